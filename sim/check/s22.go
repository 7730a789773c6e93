// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// s22 holds who is let in against the record's list of revocations.
//
//   - A member that has applied that somebody's certificate is revoked sends him nothing by API or Raft from barWithin later on: no call of his is
//     answered, no vote given, no stream or connection left open. That holds for a member that does not lead, too, and again from when it has
//     applied that after a restart.
//   - Once every member that runs has, an agent that is revoked carries out nothing that is committed from barWithin later on.
//   - An agent that is free to reach a member which has applied it knows of a revoked member tellWithin later, and dials him no more at his API,
//     nor says anything on what was open. It keeps that over restarts.
//   - Nobody is refused for his certificate by anybody whose list does not have it.
type s22 struct {
	idle
	*judge
	lists     []denied               // each that there was, by the index at which it began
	certs     map[string]certificate // of processes
	barred    map[pair]barring       // by members that have applied it
	known     map[pair]time.Duration // by agents, since when they have to know of members
	telling   map[pair]time.Duration // since when a member that knows can tell an agent
	committed map[fsm.Index]time.Duration
	looked    time.Duration
}

// The times of revocations.
const (
	barWithin  = time.Second     // docs/revoke.md: a second at most
	tellWithin = 2 * time.Second // of heartbeats, one each 0.2 s
)

// denied is a list from an index on: serial numbers, and roles with names, each with since when certificates are good again (0: none is).
type denied struct {
	index  fsm.Index
	all    map[string]int64
	number uint64
}

type certificate struct {
	serial string
	issued int64
	number uint64
}

// pair is who judges, and who is judged.
type pair struct{ by, of string }

// barring is since when somebody has to be kept out, and the event that says why.
type barring struct {
	since  time.Duration
	number uint64
}

func newS22(j *judge) rule {
	return &s22{
		judge: j, certs: map[string]certificate{}, barred: map[pair]barring{}, known: map[pair]time.Duration{}, telling: map[pair]time.Duration{},
		committed: map[fsm.Index]time.Duration{},
	}
}

func (r *s22) step(s *step) {
	if len(r.certs) == 0 {
		return
	}
	r.committed[s.index] = r.scene.now
	before := s.before
	if s.replaced {
		before, r.lists = nil, nil
	}
	if before != nil && !fsm.Differ(before, s.after, fsm.TableRevocations) {
		return
	}
	list := denied{index: s.index, all: map[string]int64{}, number: s.Number}
	for _, x := range fsm.List[*fsm.Revocation](s.after, fsm.TableRevocations) {
		list.all[string(x.Of)+" "+x.Name] = x.Before
	}
	r.lists = append(r.lists, list)
	r.weigh()
}

func (r *s22) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Certified:
		r.certs[x.Process] = certificate{x.Serial, int64(x.Issued), e.Number}
		for key := range r.known {
			if key.of == x.Process {
				delete(r.known, key)
			}
		}
		r.weigh()
	case event.Applied, event.Restored, event.Started, event.Ended:
		if len(r.lists) > 0 {
			r.weigh()
		}
	case event.Wiped:
		for key := range r.known {
			if key.by == x.Machine {
				delete(r.known, key)
			}
		}
	case event.Message:
		r.message(e.Number, x)
	case event.Acted:
		r.acted(e.Number, x)
	case event.Barred:
		r.refused(e.Number, x)
	}
}

// weigh sees whom each member has to keep out by what it has applied.
func (r *s22) weigh() {
	for _, member := range r.topology.Members {
		index, has := r.scene.applied[member]
		list, listed := r.listAt(fsm.Index(index))
		for of := range r.certs {
			key := pair{member, of}
			_, was := r.barred[key]
			switch now := has && listed && r.scene.runs[member] && of != member && list.denies(r, of); {
			case now && !was:
				r.barred[key] = barring{r.scene.now, max(list.number, r.certs[of].number)}
			case !now:
				delete(r.barred, key)
			}
		}
	}
}

// listAt is the list that somebody has who applied everything up to an index.
func (r *s22) listAt(index fsm.Index) (denied, bool) {
	for i := len(r.lists) - 1; i >= 0; i-- {
		if r.lists[i].index <= index {
			return r.lists[i], true
		}
	}
	return denied{}, false
}

// denies tells whether it has what a process shows.
func (d denied) denies(r *s22, process string) bool {
	c, role := r.certs[process], "agent"
	if slices.Contains(r.topology.Members, process) {
		role = "member"
	}
	if _, one := d.all["serial "+c.serial]; one {
		return true
	}
	before, all := d.all[role+" "+process]
	return all && (before == 0 || c.issued < before)
}

// message judges what a process sent.
func (r *s22) message(number uint64, x event.Message) {
	if x.Port != start.APIPort && x.Port != start.RaftPort || x.What != "data" && x.What != "dial" {
		return
	}
	key := pair{x.From, x.To}
	if b, ok := r.barred[key]; ok && x.What == "data" && x.Sent-b.since > barWithin {
		r.broken(x.From+" to "+x.To, fmt.Sprintf("it has applied at %s that the other one's certificate is revoked, and said something to it at %s", b.since, x.Sent), b.number, number)
	}
	if since, ok := r.known[key]; ok && x.Sent > since {
		r.broken(x.From+" to "+x.To, fmt.Sprintf("since %s it has to know that that member's certificate is revoked, and at %s it sent a %s", since, x.Sent, x.What), number)
	}
}

// acted judges what an agent carried out.
func (r *s22) acted(number uint64, x event.Acted) {
	since, by, out := r.outSince(x.Process)
	at, known := r.committed[x.Revision.Index]
	if out && known && x.Revision.Epoch == r.record.View().Group().Epoch && at-since > barWithin {
		r.broken(x.Process, fmt.Sprintf("all members know since %s that its certificate is revoked, and it carried out what was committed at %s", since, at), by, number)
	}
}

// outSince tells since when every member that runs has to keep somebody out.
func (r *s22) outSince(of string) (since time.Duration, number uint64, out bool) {
	for _, member := range r.topology.Members {
		if !r.scene.runs[member] || member == of {
			continue
		}
		b, ok := r.barred[pair{member, of}]
		if !ok {
			return 0, 0, false
		}
		if b.since >= since {
			since, number = b.since, b.number
		}
		out = true
	}
	return since, number, out
}

// refused judges a refusal.
func (r *s22) refused(number uint64, x event.Barred) {
	index, member := r.scene.applied[x.Process]
	if !slices.Contains(r.topology.Members, x.Process) {
		index, member = 0, false // what an agent was told is of any list
	}
	shown := r.certs[x.Peer]
	if shown.serial != x.Serial { // it showed that before
		return
	}
	for _, list := range r.lists {
		last := list.index == r.lists[len(r.lists)-1].index
		if (!member || last || r.current(list, fsm.Index(index))) && list.denies(r, x.Peer) {
			r.checked()
			return
		}
	}
	r.broken(x.Process+" to "+x.Peer, "it refused that certificate, which is not revoked by what it knows", shown.number, number)
}

// current tells whether a list is what somebody has who applied everything up to an index, or one that came since.
func (r *s22) current(list denied, index fsm.Index) bool {
	now, ok := r.listAt(index)
	return !ok || list.index >= now.index
}

// tick sees which agents have to know of members.
func (r *s22) tick() {
	if len(r.barred) == 0 && len(r.known) == 0 || r.scene.now-r.looked < lookEvery {
		return
	}
	r.looked = r.scene.now
	newest, listed := denied{}, len(r.lists) > 0
	if listed {
		newest = r.lists[len(r.lists)-1]
	}
	for _, of := range r.topology.Members {
		for _, n := range r.topology.Nodes {
			key := pair{n.Name, of}
			if !listed || !newest.denies(r, of) {
				delete(r.known, key)
				delete(r.telling, key)
				continue
			}
			r.tells(key)
		}
	}
}

// tells notes since when somebody can tell an agent of a revoked member, and when it has to know.
func (r *s22) tells(key pair) {
	can := r.scene.worksFor(key.by, tellWithin) && slices.ContainsFunc(r.topology.Members, func(member string) bool {
		b, knows := r.barred[pair{member, key.of}]
		_, out := r.barred[pair{member, key.by}]
		return knows && !out && r.scene.now-b.since > tellWithin && r.scene.worksFor(member, tellWithin) && r.scene.inQuorum(member)
	})
	if !can {
		delete(r.telling, key)
		return
	}
	if _, since := r.telling[key]; !since {
		r.telling[key] = r.scene.now
	}
	if _, knows := r.known[key]; !knows && r.scene.now-r.telling[key] > tellWithin {
		r.known[key] = r.scene.now
		r.checked()
	}
}
