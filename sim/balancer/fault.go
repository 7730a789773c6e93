// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer/message"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network/httpd"
)

// Fault is something that may be wrong with a driver.
type Fault string

// Faults. Each says what it does while it lasts.
const (
	// Away: calls are not answered ("silent", the default of Scope.How), nobody listens ("refused"), or something in the
	// driver's place answers 503 ("unavailable"). Nothing is done. At the end, whatever waits for an answer is broken off.
	Away Fault = "away"
	// Slow: calls take effect Scope.Delay later on average, and are answered as much later.
	Slow Fault = "slow"
	// Late: calls are not answered, and take effect after their callers have given up, within Options.Settle.
	Late Fault = "late"
	// Mute: calls take effect, and the connection breaks before the answer.
	Mute Fault = "mute"
	// ErrorOn: calls are answered as failed, or with status 500 (Scope.How "status"). Every second one of the latter has
	// taken effect all the same.
	ErrorOn Fault = "error"
	// Busy: what a call asks for takes Scope.Delay on average, and is answered with "ask again" meanwhile. As that answer
	// may be lost, it is done within Options.Settle as well.
	Busy Fault = "busy"
	// Twice: calls that succeeded are carried out again Scope.Delay after their answer on average, if nothing newer came in meanwhile.
	Twice Fault = "twice"
)

// Faults lists all of them.
func Faults() []Fault { return []Fault{Away, Slow, Late, Mute, ErrorOn, Busy, Twice} }

// Scope is which calls a fault concerns, and how much. All fields are optional.
type Scope struct {
	Actions []fsm.Action  // all if empty
	Share   float64       // of calls, drawn one by one; all if 0. Slow concerns all
	Delay   time.Duration // default 2 s
	How     string
}

// fault is one that lasts.
type fault struct {
	Fault
	Scope
	random *rand.Rand
	hung   []*httpd.Answer // of Away
	calls  int             // of ErrorOn
	over   bool
}

// Begin begins a fault and gives what ends it. Faults may overlap, also those of one kind; of several that concern a
// call the oldest has it.
func (d *Driver) Begin(f Fault, s Scope) (end func()) {
	if s.Delay == 0 {
		s.Delay = 2 * time.Second
	}
	x := &fault{Fault: f, Scope: s, random: d.w.Random("driver/" + d.o.Driver + "/" + string(f))}
	d.faults = append(d.faults, x)
	if x.closes() {
		if d.closed++; d.closed == 1 {
			d.n.Close(d.Machine(), start.DriverPort)
		}
	}
	return func() {
		if x.over {
			return
		}
		x.over = true
		d.faults = slices.DeleteFunc(d.faults, func(o *fault) bool { return o == x })
		d.ended(x)
	}
}

func (f *fault) closes() bool { return f.Fault == Away && f.How == "refused" }

func (d *Driver) ended(f *fault) {
	if f.closes() {
		if d.closed--; d.closed == 0 {
			d.open()
		}
	}
	for _, a := range f.hung {
		a.Break()
	}
}

// concerns tells whether a call falls to a fault.
func (f *fault) concerns(c *call) bool {
	if f.Fault == Slow || len(f.Actions) > 0 && !slices.Contains(f.Actions, c.action) {
		return false
	}
	return f.Share == 0 || f.random.Float64() < f.Share
}

// slowness draws what faults add to half a call.
func (d *Driver) slowness() (sum time.Duration) {
	for _, f := range d.faults {
		if f.Fault == Slow {
			sum += f.spread()
		}
	}
	return sum
}

// spread draws a time around Delay.
func (f *fault) spread() time.Duration {
	return f.Delay/2 + time.Duration(f.random.Int64N(int64(f.Delay)+1))
}

// meet has a call meet the fault that concerns it, if there is one.
func (d *Driver) meet(c *call) bool {
	i := slices.IndexFunc(d.faults, func(f *fault) bool { return f.concerns(c) })
	if i < 0 {
		return false
	}
	switch f := d.faults[i]; f.Fault {
	case Away:
		if f.How == "unavailable" {
			c.answer.Respond(http.StatusServiceUnavailable, nil, nil)
		} else {
			f.hung = append(f.hung, c.answer)
		}
	case Late:
		d.w.After(c.Within+time.Duration(f.random.Int64N(int64(d.latest()))), func() { d.carryOut(c) })
	case Mute:
		d.work(c, func(*call, message.Answer) { c.answer.Break() })
	case ErrorOn:
		d.fail(f, c)
	case Busy:
		if d.jobs[c.subject] != nil || c.action == fsm.ActionAddress {
			return false
		}
		d.answered(c, d.begin(c, f.spread()).running(d.w.Now()))
	case Twice:
		d.work(c, func(c *call, m message.Answer) {
			d.answered(c, m)
			if m.Result == message.Succeeded { // who says that it failed has done nothing, and does nothing
				d.w.After(f.spread(), func() { d.again(c) })
			}
		})
	}
	return true
}

func (d *Driver) fail(f *fault, c *call) {
	if f.How != "status" {
		d.w.After(d.time(), func() { d.answered(c, failed("the balancer's own API is out of order")) })
		return
	}
	effect := f.calls%2 == 1
	f.calls++
	d.w.After(d.inTime(c, d.time()), func() {
		if effect {
			d.carryOut(c)
		}
		c.answer.Respond(http.StatusInternalServerError, nil, nil)
	})
}

// again carries a call out a second time.
func (d *Driver) again(c *call) {
	if d.attempts[c.subject] == c.Attempt && (c.Backend != nil || d.balancers[c.Balancer].newest == c.Attempt) {
		d.carryOut(c)
	}
}
