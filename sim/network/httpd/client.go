// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"errors"
	"fmt"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/head"
)

// Errors of Call. After ErrRefused the request surely was not seen; after the others nobody knows.
var (
	ErrRefused = errors.New("connection refused")
	ErrBroken  = errors.New("connection broke")
	ErrTimeout = errors.New("no answer in time")
)

// Response is a whole answer.
type Response struct {
	Status int
	Header map[string][]string
	Body   []byte
}

// Call sends a request with its body and calls done once: with the whole answer, or with why there is none within the
// time given.
func Call(w *engine.World, n *network.Network, from, to, port string, request head.Request, body []byte, within time.Duration, done func(Response, error)) {
	c := n.Dial(from, to, port, request.Encode())
	a := &call{done: done}
	a.timer = w.After(within, func() {
		c.Reset()
		a.finish(fmt.Errorf("%s %s of %s: %w", request.Method, request.Target, to, ErrTimeout))
	})
	c.Handle(a.take, func(broken bool) {
		switch {
		case broken && c.Why() == network.Refused:
			a.finish(fmt.Errorf("%s: %w", to, ErrRefused))
		case broken || !a.headed:
			a.finish(fmt.Errorf("%s %s of %s: %w", request.Method, request.Target, to, ErrBroken))
		default:
			a.finish(nil)
		}
	})
	if len(body) > 0 {
		c.Send(body)
	}
	c.End()
}

// call is a request under way.
type call struct {
	done   func(Response, error)
	timer  *engine.Timer
	answer Response
	headed bool
	bad    error
}

func (a *call) take(b []byte) {
	if a.headed {
		a.answer.Body = append(a.answer.Body, b...)
		return
	}
	h, err := head.DecodeResponse(b)
	a.headed, a.bad = true, err
	a.answer.Status, a.answer.Header = h.Status, h.Header
}

func (a *call) finish(err error) {
	done := a.done
	if done == nil {
		return
	}
	a.done = nil
	a.timer.Stop()
	if err == nil {
		err = a.bad
	}
	done(a.answer, err)
}
