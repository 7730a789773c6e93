// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// l3 asks for new work to get done while a majority of members is undisturbed, whatever happens to the others. The time
// begins anew when the leader is disturbed or ends, since another one must be found then, and at nothing else that a
// minority does. A leader whose disk hangs is given the time that it may take to give up.
//
// Calls: a client that keeps asking undisturbed members (never more than patient between two calls) must succeed within
// L3. Kubernetes: an address of a Service that undisturbed nodes serve, which a node does not under the policy Local if all its endpoints rest for failed probes, must be forwarded within L3 by each undisturbed
// switch with which an undisturbed member has a session, while the API server is undisturbed and tells the truth; after
// trouble with it, or what it told a member that was not so, within L3 of when members ask it again.
type l3 struct {
	idle
	*judge
	founded bool             // somebody has led
	leader  string           // as far as nobody disturbed it
	shaken  time.Duration    // when the leader was last disturbed from outside, or when it has given up at the latest
	hung    map[int][]string // whose disks hang, by the fault
	clients map[string]*streak
	open    map[int]*asked
	late    overdue
	looked  time.Duration
}

// patient is within what time a client asks again.
const patient = time.Second

// streak is how long a client has been asking in vain.
type streak struct {
	began, ended time.Duration
	numbers      []uint64
}

type asked struct {
	event.CallBegan
	at     time.Duration
	number uint64
}

func newL3(j *judge) rule {
	return &l3{judge: j, clients: map[string]*streak{}, open: map[int]*asked{}, hung: map[int][]string{}, late: newOverdue()}
}

func (r *l3) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Ended:
		r.shake(x.Process)
	case event.MachineDown:
		r.shake(x.Machine)
	case event.FaultBegan:
		if x.Fault == "disk-hang" {
			r.hung[x.ID] = x.On
		}
		for _, name := range x.On {
			r.shake(name)
		}
		if len(x.On) == 0 {
			r.shaken = e.At
		}
	case event.FaultEnded:
		delete(r.hung, x.ID)
	case event.Leading:
		if !x.On {
			return
		}
		if !r.founded {
			r.founded, r.shaken = true, e.At
		}
		if r.leader = x.Process; r.scene.named[x.Process] > 0 {
			r.shake(x.Process) // it will have to be another one
		}
	case event.CallBegan:
		r.open[x.ID] = &asked{x, e.At, e.Number}
	case event.CallEnded:
		if c := r.open[x.ID]; c != nil {
			delete(r.open, x.ID)
			r.ended(c, x, e.Number)
		}
	}
}

// shake notes that somebody was disturbed. A leader whose disk hangs leads on until it gives up, which shakes nothing then: it was to be done with
// by then.
func (r *l3) shake(name string) {
	if name != r.leader {
		return
	}
	r.leader, r.shaken = "", max(r.shaken, r.scene.now)
	for _, names := range r.hung {
		if slices.Contains(names, name) {
			r.shaken = max(r.shaken, r.scene.now+givesUp)
		}
	}
}

// givesUp is within what time a leader ends that commits nothing of what it is asked for.
const givesUp = 6 * time.Second

// due tells whether what has been asked for since a time must be done by now.
func (r *l3) due(since time.Duration) bool {
	return r.founded && r.scene.sound != never && r.scene.now-max(since, r.scene.sound, r.shaken) > r.bounds.L3
}

func (r *l3) ended(c *asked, x event.CallEnded, number uint64) {
	s := r.clients[c.Client]
	if x.Outcome == "ok" {
		r.checked()
		delete(r.clients, c.Client)
		return
	}
	if !r.scene.worksFor(c.To, r.scene.now-c.at) {
		return // whom it asked is excused
	}
	if s == nil || c.at-s.ended > patient {
		s = &streak{began: c.at}
		r.clients[c.Client] = s
	}
	s.ended, s.numbers = r.scene.now, append(s.numbers, c.number, number)
	if r.due(max(s.began, r.scene.freed[c.To])) {
		r.broken("client "+c.Client, fmt.Sprintf("it has been asking in vain since %s, last %s: %s", s.began, c.To, x.Why), s.numbers...)
	}
}

func (r *l3) tick() {
	if r.scene.now-r.looked < lookEvery {
		return
	}
	r.looked = r.scene.now
	for _, id := range sortedKeys(r.open) {
		c := r.open[id]
		if r.scene.worksFor(c.To, 0) && r.due(max(c.at, r.scene.freed[c.To])) {
			r.broken("client "+c.Client, fmt.Sprintf("its call to %s has not been answered since %s", c.To, c.at), c.number)
		}
	}
	truthful := r.scene.unexcused("kubernetes") && r.kube.configured != never
	for _, id := range r.kube.names {
		for _, sw := range r.topology.Switches {
			key := id + " at " + sw
			wrong := truthful && r.servable(id) && r.reachable(sw) && !r.forwarded(id, sw)
			r.late.note(key, wrong, r.scene.now, "undisturbed nodes serve it", r.kube.services[id].number)
		}
	}
	for _, key := range r.late.over(r.scene.now, r.bounds.L3) {
		w := r.late.since[key]
		if r.due(max(w.at, r.askedAgain(r.scene.misled), r.askedAgain(r.scene.freed["kubernetes"]))) {
			r.broken("service "+key, fmt.Sprintf("%s since %s, and it is not forwarded", w.why, w.at), w.event)
		}
	}
}

// askedAgain is when members ask the API server again at the latest after trouble at some time; 0 if there was none.
func (j *judge) askedAgain(trouble time.Duration) time.Duration {
	if trouble <= 0 {
		return 0
	}
	return trouble + j.bounds.Retry
}

// servable tells whether a Service has what it needs from users and nodes.
func (r *l3) servable(id string) bool {
	v := r.record.View()
	if row, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, id); ok && row.Pending.Code != "" || !r.known(v, id) {
		return false
	}
	return slices.ContainsFunc(r.kube.serving(id), func(name string) bool {
		n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, name)
		return r.scene.worksFor(name, r.bounds.L3) && (!ok || n.Liveness == fsm.NodeUp) && !deafAt(v, fsm.ServiceID(id), fsm.NodeID(name))
	})
}

// reachable tells whether an undisturbed member in contact has had a session with an undisturbed switch for a while.
func (r *l3) reachable(sw string) bool {
	return r.scene.unexcused(sw) && slices.ContainsFunc(r.scene.members(), func(m string) bool {
		s := r.scene.sessions[link{sw, m}]
		return r.scene.worksFor(m, 0) && r.scene.inQuorum(m) && s.up && r.scene.now-s.since >= r.bounds.L3
	})
}

// forwarded tells whether a switch forwards any address of a Service, or one that it is not to be told of.
func (r *l3) forwarded(id, sw string) bool {
	r.checked()
	return slices.ContainsFunc(r.record.View().Addresses(fsm.ServiceID(id)), func(a *fsm.Allocation) bool {
		return !r.mustBeTold(r.record.View(), sw, a.Address) || len(r.carriers(id, a.Address)) == 0 || len(r.scene.ways.to(sw, a.Address).NextHops) > 0
	})
}
