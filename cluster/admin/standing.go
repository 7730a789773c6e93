// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/pki"
)

// Standing is what the group says of those who call, and of who answers. All of it is asked for each call, and must be quick.
type Standing struct {
	// Revoked tells whose certificates are good no more; optional: nobody's.
	Revoked pki.Revoked
	// Serves tells whether a member is a server of the newest committed configuration; optional: each is.
	Serves func(member string) bool
	// Starting tells why this member has not read the group's record since it started, and what to do; empty once it has. Optional: it has.
	Starting func() (why, remedy string)
}

// fault is what is wrong with a caller, whatever it calls; nil for nothing. A call that a member hands on is one of both.
func (s Standing) fault(c Caller, procedure string, now time.Time) *Refusal {
	refuse := func(who, why, remedy string) *Refusal {
		return &Refusal{Code: Forbidden, What: "call " + procedure + " as " + who, Why: why, Remedy: remedy}
	}
	id := c.connected()
	if cert := c.Certificate; cert != nil {
		if now.After(cert.NotAfter) {
			return refuse(id.String(), "its certificate is over since "+cert.NotAfter.UTC().Format(time.RFC3339), "connect with another certificate")
		}
		if why := s.Revoked.Of(id, cert); why != "" {
			return refuse(id.String(), why, remedyRevoked)
		}
	}
	if s.Revoked != nil && (c.Certificate == nil || c.ForwardedBy != "") {
		if why := s.Revoked(c.Identity, c.Serial, time.Time{}); why != "" {
			return refuse(c.Identity.String(), why, remedyRevoked)
		}
	}
	return nil
}

const remedyRevoked = "nothing, if the key was stolen; else `fairlead pki list` shows who revoked it, and `fairlead pki revoke --undo` takes that back"

// serving refuses what only servers of the group may do; nil for one that is.
func (s Standing) serving(c Caller, procedure string) *Refusal {
	id := c.connected()
	if id.Role != pki.Member || s.Serves == nil || s.Serves(id.Name) {
		return nil
	}
	return &Refusal{
		Code: Forbidden, What: "call " + procedure + " as " + id.String(), Why: "the group's configuration names no server of that member",
		Remedy: "`fairlead raft status` lists them; one that an operator removed comes back by `fairlead raft add`",
	}
}

// starting refuses what a member could only answer from a record that it does not have yet; nil once it has.
func (s Standing) starting(procedure string) *Refusal {
	if s.Starting == nil {
		return nil
	}
	why, remedy := s.Starting()
	if why == "" {
		return nil
	}
	return &Refusal{Code: NotReady, What: "call " + procedure, Why: why, Remedy: remedy}
}

// streams are those under way, so that each ends once its caller would be refused.
type streams struct {
	mu   sync.Mutex
	next int
	open map[int]stream
}

type stream struct {
	caller    Caller
	procedure string
	end       context.CancelCauseFunc
}

func (s *streams) begin(one stream) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[int]stream{}
	}
	s.next++
	number := s.next
	s.open[number] = one
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, number)
	}
}

// endStale ends those whose callers are refused by now.
func (s *streams) endStale(refuse func(Caller, string) *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.open {
		if refusal := refuse(one.caller, one.procedure); refusal != nil {
			one.end(refusal)
		}
	}
}
