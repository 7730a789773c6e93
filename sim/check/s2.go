// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s2 remembers what clients were told is done. The command must stand in the log where the answer said, stay there, and
// be applied by whoever begins to lead later. What clients read and wrote is judged at the end, see linear.go.
type s2 struct {
	idle
	*judge
	calls map[int]*call
	order []int
	begin []*call // what registers held when the record was last replaced
	acked ack     // the newest
	known map[fsm.Index]ack
}

type ack struct {
	index  fsm.Index
	epoch  fsm.Epoch
	number uint64
	data   string
}

// call is one of a client.
type call struct {
	event.CallEnded // zero as long as it has not ended
	began, ended    event.Stamped
	answered        bool
	former          bool // it began in a life of the group that ended
	key, do, value  string
}

func newS2(j *judge) rule {
	return &s2{judge: j, calls: map[int]*call{}, known: map[fsm.Index]ack{}}
}

func (r *s2) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.CallBegan:
		r.calls[x.ID] = &call{began: e, do: x.Do, key: x.Key, value: x.Value}
		r.order = append(r.order, x.ID)
	case event.CallEnded:
		if c := r.calls[x.ID]; c != nil {
			c.CallEnded, c.ended, c.answered = x, e, true
			if x.Outcome == "ok" && x.Index != 0 && c.do != "get" && !c.former {
				r.acknowledged(e, c)
			}
		}
	case event.Leading:
		r.leads(e.Number, x)
	case event.Applied:
		r.overwritten(e.Number, x)
	}
}

func (r *s2) acknowledged(e event.Stamped, c *call) {
	r.checked()
	subject := fmt.Sprintf("%s of %s at index %d", c.do, c.key, c.Index)
	index := fsm.Index(c.Index)
	is := r.record.past[index]
	if is == nil {
		if index > r.record.View().Applied() || r.record.order[0] <= index {
			r.broken(subject, "it was acknowledged, and nobody has applied it", c.began.Number, e.Number)
		}
		return
	}
	if c.do == "put" && !holds(is.data, c.key, c.value) {
		r.broken(subject, "it was acknowledged, and the entry holds something else", c.began.Number, is.number, e.Number)
		return
	}
	a := ack{index, is.epoch, e.Number, string(is.data)}
	r.known[index] = a
	if a.epoch > r.acked.epoch || a.epoch == r.acked.epoch && index > r.acked.index {
		r.acked = a
	}
}

// leads judges who begins to lead: everything that was acknowledged before must be applied there by then.
func (r *s2) leads(number uint64, x event.Leading) {
	if !x.On || r.acked.index == 0 || r.record.View().Group().Epoch != r.acked.epoch {
		return
	}
	r.checked()
	if have := r.scene.applied[x.Process]; fsm.Index(have) < r.acked.index {
		r.broken(fmt.Sprintf("%s in term %d", x.Process, x.Term),
			fmt.Sprintf("it leads and has applied up to %d, and %d was acknowledged", have, r.acked.index), r.acked.number, number)
	}
}

// overwritten finds something else where an acknowledged command was.
func (r *s2) overwritten(number uint64, x event.Applied) {
	a, ok := r.known[fsm.Index(x.Index)]
	if !ok || a.epoch != r.record.View().Group().Epoch {
		return
	}
	if a.data != string(x.Entry) {
		r.broken(fmt.Sprintf("%s at index %d", x.Process, x.Index), "an acknowledged command is gone from the log", a.number, number)
	}
}

func (r *s2) finish() { r.registers() }

// registers judges what clients read and wrote, and gives the registers.
func (r *s2) registers() (keys []string) {
	history := slices.Clone(r.begin)
	for _, id := range r.order {
		if c := r.calls[id]; c.do == "put" || c.do == "get" {
			history = append(history, c)
		}
	}
	for _, key := range keysOf(history) {
		r.checked()
		if why := linearizable(key, history); why != nil {
			r.broken("register "+key, why.text, why.events...)
		}
		keys = append(keys, key)
	}
	return keys
}

// step begins a new account where the record was replaced, by a backup or by what the last member had: registers are
// what that says. Writes that were under way may be of either life; reads can be of both, and are left out.
func (r *s2) step(s *step) {
	if !s.replaced {
		return
	}
	keys := r.registers()
	r.begin = nil
	for _, key := range keys {
		c := &call{do: "put", key: key, began: s.Stamped, ended: s.Stamped, answered: true, CallEnded: event.CallEnded{Outcome: "ok"}}
		if p, ok := fsm.Get[*fsm.Register](s.after, fsm.TableRegisters, key); ok {
			c.value = string(p.Spec)
		}
		r.begin = append(r.begin, c)
	}
	r.order = slices.DeleteFunc(r.order, func(id int) bool {
		c := r.calls[id]
		over := c.answered || c.do == "get"
		if c.former = true; over {
			delete(r.calls, id)
		}
		return over
	})
}
