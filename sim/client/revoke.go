// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/fsm"
)

// Revocation is an operator's of somebody's certificates, or of one: what is asked for is asked for again until the record says so, since
// nobody may be there to answer, and since a member that is to be revoked has to be removed first.
type Revocation struct {
	o       *Operator
	of      fsm.RevocationOf
	name    string
	undo    bool
	all     bool
	asking  bool
	settled func(after int64) // called once it is taken back
}

// How often an operator looks at the list, and for how long once it is as wanted: a call of before may yet take effect.
const (
	lookAtListEvery = 500 * time.Millisecond
	lookAtListFor   = changing + 5*time.Second
)

// Revoke puts certificates on the deny-list.
func (o *Operator) Revoke(of fsm.RevocationOf, name string) *Revocation {
	r := &Revocation{o: o, of: of, name: name}
	r.look(-1)
	return r
}

// TakeBack takes it back, all of it or for what is issued from then on, and tells since when certificates are good again: 0 for all of them.
func (r *Revocation) TakeBack(all bool, settled func(after int64)) {
	r.undo, r.all, r.settled = true, all, settled
}

// look sees whether the record says what is wanted. left is for how long it goes on to once that is so; negative for as long as nothing is taken back.
func (r *Revocation) look(left time.Duration) {
	one, listed := r.record()
	switch {
	case !r.undo && (!listed || one.Before != 0):
		r.ask()
	case r.undo && listed && (r.all || one.Before == 0):
		r.ask()
		left = lookAtListFor
	case r.undo:
		if r.settled != nil {
			settled := r.settled
			r.settled = nil
			settled(since(one))
			left = lookAtListFor
		}
		if left -= lookAtListEvery; left <= 0 {
			return
		}
	}
	r.o.g.o.World.After(lookAtListEvery, func() { r.look(left) })
}

// record is what the list has of it.
func (r *Revocation) record() (*fsm.Revocation, bool) {
	if !r.o.g.founded() {
		return nil, false
	}
	return r.o.g.o.Record().Revoked(r.of, r.name)
}

// since is from when on certificates are good that are revoked for what was before.
func since(one *fsm.Revocation) int64 {
	if one == nil {
		return 0
	}
	return one.Before
}

func (r *Revocation) ask() {
	if r.asking || !r.o.g.founded() {
		return
	}
	what := "revoke " + string(r.of) + " " + r.name
	if r.undo {
		what = "take back that " + string(r.of) + " " + r.name + " was revoked"
	}
	r.asking = true
	r.o.ask(what, fairleadv1connect.EnrolServiceRevokeProcedure,
		&fairleadv1.RevokeRequest{Of: string(r.of), Name: r.name, Undo: r.undo, All: r.undo && r.all, Reason: "simulated"},
		&fairleadv1.RevokeResponse{}, func(error) { r.asking = false })
}
