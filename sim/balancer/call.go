// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer/message"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/network/httpd"
)

// call is one that came in.
type call struct {
	message.Request
	from    string
	action  fsm.Action
	whole   bool // it sets the whole balancer
	subject fsm.Subject
	answer  *httpd.Answer
}

// receive takes a call in and decides how it will go.
func (d *Driver) receive(r *httpd.Request, a *httpd.Answer) {
	c, why := d.read(r)
	if why != "" {
		d.w.Publish(event.Refused{Model: d.Machine(), By: r.From, What: r.Method + " " + r.Path + " " + string(r.Body), Why: why})
		a.Respond(http.StatusBadRequest, nil, []byte(why))
		return
	}
	c.answer = a
	if d.meet(c) {
		return
	}
	d.work(c, d.answered)
}

// work carries a call out as soon as that is possible, and then says how it went.
func (d *Driver) work(c *call, then func(*call, message.Answer)) {
	if j := d.jobs[c.subject]; j != nil {
		if j.call.action == c.action {
			j.call = c // what is wanted last counts
			then(c, j.running(d.w.Now()))
			return
		}
		j.timer.Stop()
		delete(d.jobs, c.subject)
	}
	d.w.After(d.inTime(c, d.time()), func() {
		answer := d.carryOut(c)
		d.w.After(d.time(), func() { then(c, answer) })
	})
}

// latest is how long after its caller gave up a call may take effect. A tenth of what is believed is left for clocks that
// differ and for the way.
func (d *Driver) latest() time.Duration { return d.o.Settle * 9 / 10 }

// inTime bounds after what time a call takes effect, however slow the driver is.
func (d *Driver) inTime(c *call, t time.Duration) time.Duration { return min(t, c.Within+d.latest()) }

// time draws how long half a call takes.
func (d *Driver) time() time.Duration {
	return time.Duration(d.random.ExpFloat64()*float64(d.o.Time)/2) + d.slowness()
}

// answered gives the answer, if anybody waits for it.
func (d *Driver) answered(c *call, m message.Answer) {
	if c.answer.Over() {
		return
	}
	d.publish(c, "answered", m.Result)
	c.answer.Respond(http.StatusOK, map[string]string{"Content-Type": "application/json"}, message.Encode(m))
}

func (d *Driver) publish(c *call, phase, result string) {
	e := event.Drive{
		Driver: d.o.Driver, Process: c.from, Phase: phase, Action: c.action.String(), Balancer: c.Balancer, Attempt: c.Attempt, Result: result,
	}
	if e.Binding = c.Object; c.Backend != nil {
		e.Address, e.Binding = c.Backend.Address, c.Backend.Binding
	}
	d.w.Publish(e)
}

// read understands a request, or says why nobody may send it.
func (d *Driver) read(r *httpd.Request) (c *call, why string) {
	c = &call{from: r.From}
	if r.Method != http.MethodPost {
		return nil, "it is not a POST"
	}
	for a := fsm.ActionAddress; a <= fsm.ActionCreateBalancer; a++ {
		if message.Path(a) == r.Path {
			c.action = a
		}
	}
	if r.Path == message.SetPath {
		c.action, c.whole = fsm.ActionEnsure, true
	}
	if c.action == 0 {
		return nil, "there is no such action"
	}
	decoder := json.NewDecoder(strings.NewReader(string(r.Body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c.Request); err != nil {
		return nil, err.Error()
	}
	return c, d.judge(c)
}

// identity is what the record knows the balancer of a call by; empty if it does not yet.
func (d *Driver) identity(c *call) fsm.Identity {
	if c.Object != "" {
		return ""
	}
	return Identity(d.Known(), c.Balancer)
}

// judge says what is wrong with a call.
func (d *Driver) judge(c *call) string {
	aboutBackend := c.action == fsm.ActionAddress || c.action == fsm.ActionEnsure || c.action == fsm.ActionDeregister
	b := d.balancers[c.Balancer]
	switch {
	case b == nil:
		return fmt.Sprintf("there is no balancer %q here", c.Balancer)
	case c.Attempt.IsZero() != (c.action == fsm.ActionAddress):
		return "it has no attempt, or needs none"
	case c.Within <= 0:
		return "nobody waits for it"
	case aboutBackend != (c.Backend != nil):
		return "it says nothing of a backend, or of one too many"
	case (c.Object != "") != (len(c.Info) == 0):
		return "it names an object and an identity, or neither"
	case c.Object != "" && c.action != fsm.ActionCreateBalancer && c.action != fsm.ActionDeleteBalancer:
		return "nobody has heard what the balancer is"
	case !aboutBackend:
		c.subject = (&fsm.LoadBalancer{ID: fsm.BalancerID(c.Object), Identity: d.identity(c)}).Subject()
	case c.Backend.Binding == "":
		return "it names no binding"
	case c.whole != slices.Contains(c.All, c.Backend.Address) || !c.whole && c.All != nil:
		return "it sets all without its own, or names others and sets one"
	case (c.Backend.Address == "") != (c.action == fsm.ActionAddress):
		return "it lacks an address, or asks for one that it has"
	case c.action != fsm.ActionDeregister && !b.ever:
		return "nobody has asked for the balancer"
	default:
		c.subject = fsm.SubjectOf(d.identity(c), c.Backend.Address, fsm.BindingID(c.Backend.Binding))
	}
	switch newest := d.attempts[c.subject]; {
	case c.action == fsm.ActionAddress:
	case c.Attempt == newest:
		return "its attempt was used before"
	case c.Attempt.Before(newest):
		d.back++
	default:
		d.attempts[c.subject] = c.Attempt
	}
	if !aboutBackend && b.newest.Before(c.Attempt) {
		b.newest = c.Attempt
	}
	return ""
}
