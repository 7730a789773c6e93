// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// s11Wishes is the part of S11 about objects of LBCF's kinds. Members write BackendRecords that say whose they are, and of
// all others the status and finalizers. While an LBCF controller runs, its objects are its, and no driver is called.
type s11Wishes struct {
	*judge
	were map[string]*wish
	// inherited is when another controller registered what is there.
	inherited map[place]time.Duration
	// theirs are the BackendRecords by which it did, by id.
	theirs map[string]theirs
	// terms are who leads in them, and since when; added is with what bindings were added, by UID.
	terms map[uint64]term
	added map[string]addition
	// apart is the newest partition that had the API server on its smaller side.
	apart partition
}

type (
	// theirs is a BackendRecord by which another controller registered something, and since when it says so.
	theirs struct {
		uid string
		at  time.Duration
	}

	term struct {
		leader string
		began  time.Duration
	}

	// addition is in which term a binding was added, and when.
	addition struct {
		term uint64
		at   time.Duration
	}

	// partition is who was cut off from all others, from when until when.
	partition struct {
		id       int
		on       []string
		from, to time.Duration
	}
)

func newS11Wishes(j *judge) *s11Wishes {
	return &s11Wishes{
		judge: j, were: map[string]*wish{}, inherited: map[place]time.Duration{}, theirs: map[string]theirs{}, terms: map[uint64]term{},
		added: map[string]addition{}, apart: partition{to: never},
	}
}

// hear takes in who leads, and who is cut off from the API server.
func (r *s11Wishes) hear(e event.Event) {
	switch x := e.(type) {
	case event.Leading:
		if x.On {
			r.terms[x.Term] = term{x.Process, r.scene.now}
		}
	case event.FaultBegan:
		if x.Fault == "partition" && slices.Contains(x.On, start.Kubernetes) {
			r.apart = partition{x.ID, x.On, r.scene.now, never}
		}
	case event.FaultEnded:
		if x.ID == r.apart.id {
			r.apart.to = r.scene.now
		}
	}
}

// adds takes in what bindings a step of the record added.
func (r *s11Wishes) adds(s *step) {
	entry, ok := s.Event.(event.Applied)
	if !ok {
		return
	}
	for _, p := range s.proposals {
		c, puts := p.Command.(*fsm.PutBinding)
		if !puts {
			continue
		}
		if _, was := fsm.Get[*fsm.Binding](s.before, fsm.TableBindings, string(c.ID)); was {
			continue
		}
		if b, is := fsm.Get[*fsm.Binding](s.after, fsm.TableBindings, string(c.ID)); is {
			r.added[b.UID] = addition{entry.Term, r.scene.now}
		}
	}
}

// entered takes in what balancers hold.
func (r *s11Wishes) entered(x event.Entry) {
	at := r.placeOf(x.Balancer, x.Address)
	if delete(r.inherited, at); x.Present && x.By == "rival" {
		r.inherited[at] = r.scene.now
	}
}

// anew judges a registration that is sent: what another controller registered, and nobody has changed since, is taken over
// as it is. Of two bindings that lead to one place, as LoadBalancers do that mean one balancer, it may have had one only: the
// other one is registered, however many calls that takes. Where an earlier call of ours may take effect yet (S6), it is said
// once more what shall be there. Beside one that runs, whoever must know of it calls nobody (called), and who does not know
// may hear of a BackendGroup before it hears of a BackendRecord that was made with it, as watches are of one kind each. A leader of
// a later term has read all BackendRecords before it added a binding.
func (r *s11Wishes) anew(number uint64, x event.Drive) {
	at := r.placeOf(x.Balancer, x.Address)
	since, ok := r.inherited[at]
	if !ok || x.Phase != "sent" || x.Action != fsm.ActionEnsure.String() || r.wishes.rival != never {
		return
	}
	if op, called := fsm.Get[*fsm.Operation](r.record.View(), fsm.TableOperations, string(r.subjectOf(x))); called && !op.Unsettled.IsZero() {
		return
	}
	b, known := fsm.Get[*fsm.Binding](r.record.View(), fsm.TableBindings, x.Binding)
	if !known || !r.registeredByThem(b) || !r.heardSince(since) && !r.addedKnowing(b, since) || b.State == fsm.BindingBound && !b.Registered || r.untouched(b, strings.SplitN(b.Owner, "/", 4), since) == "" {
		return
	}
	r.checked()
	r.broken(at.String(), "another controller registered it, and "+x.Process+" does so anew", number)
}

// registeredByThem tells whether another controller registered the backend of a binding by the BackendRecord that is there.
func (r *s11Wishes) registeredByThem(b *fsm.Binding) bool {
	is := r.wishes.objects["BackendRecord"][string(b.ID)]
	return is != nil && r.theirs[string(b.ID)].uid == is.Metadata.UID
}

// addedKnowing tells whether whoever added a binding had read all BackendRecords since another controller registered its backend: a
// leader does so before it adds anything, whenever it was not sure before that there is no other one.
func (r *s11Wishes) addedKnowing(b *fsm.Binding, registered time.Duration) bool {
	registered = max(registered, r.theirs[string(b.ID)].at)
	with, known := r.added[b.UID]
	sure := r.sureSince(r.terms[with.term])
	return known && sure != never && registered < sure && sure <= with.at && (r.scene.misled == never || r.scene.misled < registered)
}

// sureSince is when a leader may have become sure that there is no other controller, at the earliest: in its term, or once it got back
// to an API server that did not answer for longer than it may go by an answer. It is never where that cannot be told.
func (r *s11Wishes) sureSince(t term) time.Duration {
	cut := r.apart
	switch {
	case t.leader == "":
		return never
	case cut.to == never || slices.Contains(cut.on, t.leader):
		return t.began
	case t.began >= cut.to || t.began < cut.from && cut.to-cut.from < stale:
		return t.began
	case !r.scene.freeFor(t.leader, r.scene.now-cut.from):
		return never
	}
	return cut.to
}

// stale is for how long a leader goes by an answer that no other controller runs, and then some.
const stale = 12 * time.Second

// heard takes in what a BackendRecord says. What another controller registered bears no mark of ours until it is taken over.
func (r *s11Wishes) heard(is *wish) {
	if r.theirs[is.id()].uid == is.Metadata.UID {
		return
	}
	if is.Metadata.Annotations["fairlead.io/record"] == "" && isTrue(read[recordStatus](is.Status).Conditions, "Registered") {
		r.theirs[is.id()] = theirs{is.Metadata.UID, r.scene.now}
	}
}

// wrote judges a write of an object by anybody.
func (r *s11Wishes) wrote(number uint64, x event.Object) {
	key := x.Kind + " " + x.Namespace + "/" + x.Name
	was, is := r.were[key], r.wishes.objects[x.Kind][x.Namespace+"/"+x.Name]
	if r.were[key] = is; is == nil {
		delete(r.were, key)
	} else if x.Kind == "BackendRecord" {
		r.heard(is)
	}
	if !r.ours(x.By) {
		return
	}
	r.checked()
	why := ""
	switch {
	case x.Kind == "Pod":
		why = "pods are not ours to write"
	case r.heeds(x.By):
		why = "an LBCF controller runs"
	case x.Kind == "BackendRecord":
		if is != nil && is.Metadata.Annotations["fairlead.io/record"] == "" {
			why = "it does not say that it is ours"
		}
	case was == nil:
		why = "it was made"
	case is == nil && was.Metadata.Deletion == nil:
		why = "it was deleted"
	case is != nil && (!bytes.Equal(was.Spec, is.Spec) || !maps.Equal(was.Metadata.Labels, is.Metadata.Labels)):
		why = "what it asks for was changed"
	}
	if why != "" {
		r.broken(key, "not ours to write, by "+x.By+": "+why, number)
	}
}

// watched is within what time a change of an object reaches whoever watches it, if nothing is wrong.
const watched = time.Second

// heardSince tells whether members must have heard by now of what changed in Kubernetes at a moment.
func (r *s11Wishes) heardSince(at time.Duration) bool {
	return r.scene.now-at >= watched && r.scene.freeFor(start.Kubernetes, watched)
}

// leaves is how long a group may take to find out that an LBCF controller runs: a look every five seconds, and then some.
const leaves = 8 * time.Second

// heeds tells whether a process must know that an LBCF controller runs: it leads, and for long enough both are there and nothing
// is wrong.
func (r *s11Wishes) heeds(process string) bool {
	at := r.wishes.rival
	if at == never || r.scene.now-at < leaves || r.scene.lead == never || r.scene.now-r.scene.lead < leaves {
		return false
	}
	return r.scene.leader == process && r.scene.freeFor(start.Kubernetes, leaves) && r.scene.freeFor(process, leaves)
}

// called judges a call to a driver.
func (r *s11Wishes) called(number uint64, x event.Drive) {
	if x.Phase != "sent" || !r.heeds(x.Process) {
		return
	}
	r.checked()
	r.broken("driver "+x.Driver, x.Process+" called it, and an LBCF controller runs", number)
}
