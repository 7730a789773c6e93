// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// s18 holds what the record says of endpoints that are probed, and what becomes of them, against which pods take connections, and from whom.
//
// What most nodes could reach, or could not, for as long as it takes to agree, the record says; as in s17 that counts while these nodes and the
// leader are left alone. It says nothing that so many nodes cannot have found out by the probe of now: an endpoint is bad by those who could not
// get to any of the ports that are asked, since these are asked.
//
// By what the record says endpoints that are bad rest within L3, and are back within it, or none rests where all of a family are bad; that counts
// while one undisturbed member leads a majority, and it and the API server understand each other. A node that carried out that an endpoint rests
// leads no request to it any more.
type s18 struct {
	idle
	*judge
	probers
	reach reach
	// asked is what is asked of the endpoints of Services, as long as the Service is there.
	asked map[probedEndpoint]*question
	told  map[teller]telling
	// resting is as of when the record has endpoints rest.
	resting map[probedEndpoint]telling
	wrong   overdue
	last    time.Duration
}

// probedEndpoint is an endpoint of a Service.
type probedEndpoint struct {
	service fsm.ServiceID
	address netip.Addr
}

func (e probedEndpoint) String() string { return fmt.Sprintf("%s of Service %s", e.address, e.service) }

func (e probedEndpoint) compare(o probedEndpoint) int {
	return cmp.Or(strings.Compare(string(e.service), string(o.service)), e.address.Compare(o.address))
}

// question is what is asked of an endpoint.
type question struct {
	what  string // other ones are other questions
	ports []string
	// as is as of which revision it is asked, without a break; first is when it was asked first, and nothing else since.
	as    fsm.Revision
	first time.Duration
	now   bool
}

// teller is a node that asks something of an endpoint.
type teller struct {
	node string
	of   probedEndpoint
}

func newS18(j *judge) rule {
	return &s18{judge: j, probers: newProbers(j), reach: newReach(), asked: map[probedEndpoint]*question{}, told: map[teller]telling{},
		resting: map[probedEndpoint]telling{}, wrong: newOverdue()}
}

func (r *s18) hear(e event.Stamped) {
	r.probers.hear(e)
	r.reach.hear(e)
	if x, is := e.Event.(event.Flow); is {
		r.flow(e.Number, x)
	}
}

func (r *s18) step(s *step) {
	r.probers.step(s)
	before := s.before
	if s.replaced {
		before, r.asked, r.resting = nil, map[probedEndpoint]*question{}, map[probedEndpoint]telling{}
	}
	fsm.Changes(before, s.after, fsm.TableServices, func(was, is *fsm.Service) {
		if is == nil {
			r.forget(was.ID)
			return
		}
		if r.ask(s, is); !s.replaced {
			r.found(s, was, is)
		}
		for _, e := range is.Endpoints {
			at := probedEndpoint{is.ID, e.Address}
			if _, rests := r.resting[at]; !e.Failing {
				delete(r.resting, at)
			} else if !rests {
				r.resting[at] = telling{s.after.Revision(), r.scene.now}
			}
		}
	})
	fsm.Changes(before, s.after, fsm.TableNodes, func(was, is *fsm.Node) {
		if down(was) != down(is) {
			for _, service := range fsm.List[*fsm.Service](s.after, fsm.TableServices) {
				r.ask(s, service)
			}
		}
	})
}

// down tells whether the group says so of a node.
func down(n *fsm.Node) bool { return n != nil && n.Liveness == fsm.NodeDown }

func (r *s18) forget(id fsm.ServiceID) {
	for at := range r.asked {
		if at.service == id {
			delete(r.asked, at)
			delete(r.resting, at)
		}
	}
}

// portsAsked are those of an endpoint that decide about it by a probe of connections: the one that the probe names, else all of TCP.
func portsAsked(p fsm.Probe, e fsm.Endpoint) (out []string) {
	if p.Port != 0 {
		return []string{fmt.Sprint(p.Port)}
	}
	for _, port := range e.Ports() {
		if port.Port.Protocol == fsm.TCP {
			out = append(out, fmt.Sprint(port.Port.Number))
		}
	}
	return out
}

// ask takes in what is asked of the endpoints of a Service. Nodes may hear nothing of those whose node is down, and ask them nothing then.
func (r *s18) ask(s *step, is *fsm.Service) {
	ports := map[netip.Addr][]string{}
	for _, e := range is.Endpoints {
		at, _ := fsm.Get[*fsm.Node](s.after, fsm.TableNodes, string(e.Node))
		if is.Probe().Type == "TCP" && !is.Deleting && (e.Ready || e.Failing) && !down(at) {
			ports[e.Address] = append(ports[e.Address], portsAsked(is.Probe(), e)...)
		}
	}
	for at, q := range r.asked {
		q.now = q.now && (at.service != is.ID || len(ports[at.address]) > 0)
	}
	for address, ports := range ports {
		if len(ports) == 0 {
			continue
		}
		at := probedEndpoint{is.ID, address}
		slices.Sort(ports)
		what := fmt.Sprint(is.UID, is.Probe(), slices.Compact(ports))
		q := r.asked[at]
		if q == nil || q.what != what {
			q = &question{what: what, ports: slices.Compact(ports), first: r.scene.now}
			r.asked[at] = q
		}
		if !q.now {
			q.now, q.as = true, s.after.Revision()
		}
	}
}

// found judges that endpoints are said to be bad that were not before, or of which something else was asked.
func (r *s18) found(s *step, was, is *fsm.Service) {
	for _, w := range is.Verdicts() {
		if at := (probedEndpoint{is.ID, w.Address}); !w.Healthy && r.asked[at] != nil && (was == nil || was.UID != is.UID || !badEndpoint(was, w.Address)) {
			r.checked()
			r.newlyBad(at, w, s.Number)
		}
	}
}

// newlyBad judges that an endpoint is said to be bad: by so many nodes as cannot have got to it by what is asked now.
func (r *s18) newlyBad(at probedEndpoint, w fsm.ProbeVerdict, number uint64) {
	q, say := r.asked[at], uint32(0)
	for _, n := range r.topology.Nodes {
		if r.reach.missed(n.Name, at.address, q.ports, r.scene.now) >= q.first-foundOut {
			say++
		}
	}
	if say < w.Say || 2*w.Say <= w.Of {
		r.broken(at.String(), fmt.Sprintf("%d nodes of %d say that it is bad, and %d can have found no way to its ports %s since that is asked", w.Say, w.Of, say, strings.Join(q.ports, ", ")), number)
	}
}

func badEndpoint(s *fsm.Service, a netip.Addr) bool {
	return slices.ContainsFunc(s.Verdicts(), func(w fsm.ProbeVerdict) bool { return w.Address == a && !w.Healthy })
}

func (r *s18) tick() {
	if !r.topology.Sockets.Probes || r.scene.now-r.last < lookedAt {
		return
	}
	r.last = r.scene.now
	v := r.record.View()
	there := map[teller]telling{}
	agree := r.agree()
	for _, at := range slices.SortedFunc(maps.Keys(r.asked), probedEndpoint.compare) {
		q := r.asked[at]
		if !q.now {
			continue
		}
		for _, n := range r.topology.Nodes {
			who := teller{n.Name, at}
			if !r.acknowledged(v, n.Name, q.as) {
				continue
			}
			there[who] = telling{q.as, r.scene.now}
			if t, was := r.told[who]; was && t.as == q.as {
				there[who] = t
			}
		}
		if s, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(at.service)); ok && agree {
			r.verdict(s, at, q, there)
		}
	}
	r.told = there
	r.rests(v, agree)
}

// verdict judges what the record says of an endpoint.
func (r *s18) verdict(s *fsm.Service, at probedEndpoint, q *question, told map[teller]telling) {
	can, cannot := 0, 0
	var shown []uint64
	for _, n := range r.topology.Nodes {
		t, asks := told[teller{n.Name, at}]
		reaches, settled, by := r.reach.to(n.Name, at.address, q.ports, r.scene.now-agreedOn)
		switch {
		case !asks || r.scene.now-t.at < agreedOn || !settled || !r.stays(n.Name, agreedOn) || !r.scene.worksFor(n.Name, agreedOn):
		case reaches:
			can++
		default:
			cannot++
		}
		shown = append(shown, by)
	}
	if 2*max(can, cannot) <= len(r.topology.Nodes) {
		return
	}
	r.checked()
	if said := badEndpoint(s, at.address); said != (cannot > can) {
		r.broken(at.String(), fmt.Sprintf("%d nodes of %d get to its ports %s and %d do not, and the record says that it is bad: %v",
			can, len(r.topology.Nodes), strings.Join(q.ports, ", "), cannot, said), shown...)
	}
}

// rests judges which endpoints rest, by what is said of all of a Service.
func (r *s18) rests(v *fsm.View, agree bool) {
	if !agree || !r.scene.freeFor(start.Kubernetes, agreedOn) || r.scene.now-r.askedAgain(r.scene.misled) < agreedOn {
		r.wrong = newOverdue()
		return
	}
	held, there := heldNow(v), map[string]bool{}
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		answers := map[bool]bool{} // by whether the family is IPv4
		for _, e := range s.Endpoints {
			if (e.Ready || e.Failing) && !e.Quiesced && !badEndpoint(s, e.Address) {
				answers[e.Address.Is4()] = true
			}
		}
		for _, e := range s.Endpoints {
			bad, others := badEndpoint(s, e.Address), answers[e.Address.Is4()]
			is := (e.Ready || e.Failing) && e.Failing != (bad && others) && !s.Deleting && !held[string(s.ID)]
			key := probedEndpoint{s.ID, e.Address}.String()
			there[key] = true
			r.wrong.note(key, is, r.scene.now,
				fmt.Sprintf("it rests: %v; it is bad: %v; others of its family are not: %v", e.Failing, bad, others), r.reach.said[e.Address])
		}
	}
	maps.DeleteFunc(r.wrong.since, func(key string, _ wrong) bool { return !there[key] })
	for _, key := range r.wrong.over(r.scene.now, r.bounds.L3) {
		w := r.wrong.since[key]
		r.broken(key, fmt.Sprintf("since %s: %s", w.at, w.why), w.event)
	}
}

// flow judges whom a request was led to: none that rests by all Services that have the address.
func (r *s18) flow(number uint64, x event.Flow) {
	address, known := r.reach.pods[x.Pod]
	owners := r.record.View().Owners(x.Address.String())
	if !x.Served || !known || len(owners) == 0 || !r.works(x.Node, r.bounds.L3) {
		return
	}
	for _, o := range owners {
		at, rests := r.resting[probedEndpoint{o.Service, address}]
		if !rests || r.scene.now-at.at < r.bounds.L3 || !r.acknowledged(r.record.View(), x.Node, at.as) {
			return
		}
	}
	r.broken(fmt.Sprintf("%s at %s", x.Address, x.Node), fmt.Sprintf("a request went to %s at %s, which rests since it is bad", x.Pod, address), number)
}
