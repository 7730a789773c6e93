// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errEtcd = errors.New("etcdserver: request timed out")

// reaches tells whether a fault is about requests like this one at all.
func (f *fault) reaches(c *call) bool {
	return (len(f.From) == 0 || slices.Contains(f.From, c.From)) &&
		(len(f.Kinds) == 0 || c.resource != nil && slices.Contains(f.Kinds, c.resource.kind))
}

// concerns draws whether a fault befalls a request.
func (f *fault) concerns(c *call) bool {
	return f.reaches(c) && (f.Share == 0 || f.random.Float64() < f.Share)
}

// lasting draws how long something takes, about f.Delay.
func (f *fault) lasting() time.Duration {
	return time.Duration(f.random.ExpFloat64() * float64(f.Delay))
}

// meet lets a request meet the faults that there are, and then do, if they let it through.
func (s *Server) meet(c *call, do func()) {
	var wait time.Duration
	for _, f := range slices.Clone(s.faults) {
		switch f.Fault {
		case Away, ErrorOn, Slow, OtherCluster:
			if !f.concerns(c) {
				continue
			}
		}
		switch f.Fault {
		case Away:
			s.viewed(c, "away")
			f.away(c)
			return
		case ErrorOn:
			s.viewed(c, "error")
			f.fails(c, do)
			return
		case Slow:
			wait += f.lasting()
		case OtherCluster:
			s.viewed(c, "other")
			c.store = s.other
		}
	}
	if wait == 0 {
		do()
		return
	}
	s.viewed(c, "slow")
	s.late(wait, func() {
		if c.Method != http.MethodGet || !c.done {
			do()
		}
	})
}

// late does something after a while, or once the server is quick again.
func (s *Server) late(wait time.Duration, do func()) {
	once := sync.OnceFunc(do)
	s.slowed = append(s.slowed, once)
	s.w.After(wait, once)
}

// quick has what is late done.
func (s *Server) quick() {
	if slices.ContainsFunc(s.faults, func(f *fault) bool { return f.Fault == Slow }) {
		return
	}
	for _, do := range s.slowed {
		s.w.After(0, do)
	}
	s.slowed = nil
}

func (f *fault) away(c *call) {
	switch f.How {
	case "refused":
		c.Break()
	case "unavailable":
		c.Respond(http.StatusServiceUnavailable, map[string]string{"Content-Type": "text/plain"}, []byte("no server is available to handle this request\n"))
	default:
		f.hung = append(f.hung, c)
	}
}

// unheard is an answer that never leaves the server.
type unheard struct{ Answer }

// Respond implements Answer.
func (unheard) Respond(int, map[string]string, []byte) {}

// fails answers with an error, before or after the request took effect.
func (f *fault) fails(c *call, do func()) {
	if c.Method != http.MethodGet && f.random.IntN(2) == 0 {
		heard := c.Answer
		c.Answer = unheard{heard}
		do()
		c.Answer = heard
	}
	c.status(&failure{Status: errorOf(f.Status)})
}

func errorOf(code int) metav1.Status {
	switch code {
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequests("too many requests, please try again later", 1).ErrStatus
	case http.StatusForbidden:
		return apierrors.NewForbidden(noResource, "", nil).ErrStatus
	case http.StatusUnauthorized:
		return apierrors.NewUnauthorized("Unauthorized").ErrStatus
	case http.StatusGatewayTimeout:
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0).ErrStatus
	case http.StatusServiceUnavailable:
		return apierrors.NewServiceUnavailable("etcdserver: no leader").ErrStatus
	}
	status := apierrors.NewInternalError(errEtcd).ErrStatus
	status.Code = int32(code)
	return status
}
