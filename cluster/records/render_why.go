// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// whyRenderer joins what the plan makes of things with how far the record has come with them.
type whyRenderer struct {
	*renderer
	x       *leader.Explained
	members []*fsm.Member
}

func reasonOf(code leader.Code, text string) records.Reason {
	return records.Reason{Code: string(code), Text: text, Remedy: code.Remedy()}
}

func (w *whyRenderer) service(r *leader.ServiceReasons) records.WhyService {
	d := records.WhyService{
		Name: string(r.ID), State: w.state(r), Reasons: []records.Reason{}, Addresses: []records.WhyAddress{}, Pending: []records.WhyPending{},
		Problems: each(r.Problems, func(p world.Problem) string { return p.String() }),
	}
	if r.Ours.Code != "" {
		d.Reasons = append(d.Reasons, reasonOf(r.Ours.Code, r.Ours.Text))
	}
	if r.Pending.Code != "" {
		d.Reasons = append(d.Reasons, reasonOf(leader.Code(r.Pending.Code), r.Pending.Text))
		d.Pending = append(d.Pending, records.WhyPending{On: "user", What: r.Pending.Text})
	}
	for _, e := range r.Waiting {
		switch fsm.Table(e.Kind) {
		case fsm.TableServices:
			d.Reasons = append(d.Reasons, reasonOf(leader.Code(e.Code), e.Text))
			d.Pending = append(d.Pending, waitingOn(e)...)
		case fsm.TablePeers: // of which no row tells, where it has to wait
			d.Problems = append(d.Problems, "BGPPeer "+e.Name+": "+e.Text)
		case fsm.TableAdvertisements:
			d.Problems = append(d.Problems, "BGPAdvertisement "+e.Name+": "+e.Text)
		}
	}
	for i := range r.Addresses {
		a := w.address(&r.Addresses[i], r.Waiting)
		d.Pending = append(d.Pending, pendingOf(&a)...)
		d.Addresses = append(d.Addresses, a)
	}
	d.Holds = w.holds(&d)
	for _, h := range d.Holds {
		if !h.Released {
			d.Pending = append(d.Pending, records.WhyPending{On: "operator", Name: h.ID, What: h.Why + "; `fairlead holds release " + h.ID + "` lets it go ahead", Since: &h.Since})
		}
	}
	d.History = w.history(&d)
	d.Summary = summary(&d, w.view.Count(fsm.TablePeers) > 0)
	if r.Moved.Code != "" { // which is no obstacle, as the others are
		d.Reasons = append(d.Reasons, reasonOf(r.Moved.Code, r.Moved.Text))
	}
	return d
}

// state is that of the Service.
func (w *whyRenderer) state(r *leader.ServiceReasons) string {
	have, recorded := fsm.Get[*fsm.Service](w.view, fsm.TableServices, string(r.ID))
	switch {
	case recorded && (have.Deleting || r.Ours.Code != ""), r.Ours.Code == leader.Deleting:
		return records.ServiceDeleting
	case r.Ours.Code != "":
		return records.ServiceNotOurs
	case r.Pending.Code != "":
		return records.ServicePending
	case !recorded:
		return records.ServiceNew
	}
	return records.ServiceActive
}

func (w *whyRenderer) address(r *leader.AddressReasons, waiting []leader.Explanation) records.WhyAddress {
	prefix := fsm.HostPrefix(r.Address)
	d := records.WhyAddress{
		Address: r.Address.String(), Pool: string(r.Pool), From: reasonOf(r.From.Code, r.From.Text), SharingKey: r.Key,
		SharedWith: words(r.Shared), Releasing: r.From.Code == leader.FromReleased, Reasons: []records.Reason{},
		Members: each(w.members, func(m *fsm.Member) records.WhyMember {
			return records.WhyMember{Member: m.Name, UpTo: maybe(m.Announced)}
		}),
		Peers:     each(w.audience(prefix), w.whyPeer),
		OnSegment: w.view.OnSegment(r.Pool),
	}
	if lease, held := fsm.Get[*fsm.Lease](w.view, fsm.TableLeases, d.Address); held {
		d.Holder = string(lease.Holder)
	}
	for _, e := range waiting {
		ofAddress := e.Kind == string(fsm.TableRoutes) && e.Name == prefix.String() ||
			e.Kind == string(fsm.TableAllocations) && strings.HasPrefix(e.Name, d.Address+" ")
		if ofAddress {
			d.Reasons = append(d.Reasons, reasonOf(leader.Code(e.Code), e.Text))
		}
	}
	route, _ := fsm.Get[*fsm.Route](w.view, fsm.TableRoutes, prefix.String())
	if route == nil {
		route = &fsm.Route{Prefix: prefix}
	}
	d.Nodes = each(r.Nodes, func(n leader.NodeReason) records.WhyNode { return w.whyNode(route, &n) })
	for _, h := range route.NextHops {
		announcers := w.view.Announcers(route, h)
		if len(announcers) > 0 {
			d.Announced++
		}
		for i, m := range w.members {
			if slices.Contains(announcers, m) {
				d.Members[i].Announces++
			}
		}
	}
	return d
}

// audience are the peers that an address is to be sent to, by way of any of its next hops, or of any node while it has none.
func (w *whyRenderer) audience(prefix netip.Prefix) []*fsm.Peer {
	nodes := []fsm.NodeID{""}
	if route, ok := fsm.Get[*fsm.Route](w.view, fsm.TableRoutes, prefix.String()); ok && len(route.NextHops) > 0 {
		nodes = each(route.NextHops, func(h fsm.NextHop) fsm.NodeID { return h.Node() })
	}
	sent := map[*fsm.Peer]bool{}
	for _, node := range nodes {
		for _, p := range w.view.Audience(prefix.Addr(), node) {
			sent[p] = true
		}
	}
	return slices.DeleteFunc(fsm.List[*fsm.Peer](w.view, fsm.TablePeers), func(p *fsm.Peer) bool { return !sent[p] })
}

func (w *whyRenderer) whyPeer(p *fsm.Peer) records.WhyPeer {
	d := records.WhyPeer{Name: string(p.Name), Address: addressOf(p), Interface: p.Interface}
	switch {
	case p.Nodes.Speak:
		d.Session = inWords(w.sessionsOfNodes(p))
	case w.sessions != nil:
		d.Session = w.sessions()[p.Name]
	}
	return d
}

// inWords says how the sessions of nodes stand.
func inWords(sessions []records.Session) string {
	if len(sessions) == 0 {
		return ""
	}
	established := 0
	var other records.Session
	for _, s := range sessions {
		if s.State == "established" {
			established++
		} else if other.Node == "" {
			other = s
		}
	}
	text := fmt.Sprintf("established with %d of %d nodes", established, len(sessions))
	if other.Node != "" {
		text += "; " + other.Node + " " + other.State
	}
	return text
}

// whyNode is how far a node is as a next hop. One that changes its address has two of them: what counts is the one that
// is wanted, and for the other one is waited beside it.
func (w *whyRenderer) whyNode(route *fsm.Route, r *leader.NodeReason) records.WhyNode {
	d := records.WhyNode{
		Node: string(r.Node), Wanted: r.Wanted, Reason: reasonOf(r.Code, r.Text), State: records.NodeNone, Members: []string{}, WaitsFor: []string{},
	}
	if r.Hop.IsValid() {
		d.Address = r.Hop.String()
	}
	if r.Wanted {
		d.State = records.NodePlanned
	}
	node, _ := fsm.Get[*fsm.Node](w.view, fsm.TableNodes, string(r.Node))
	d.NoAgent = (node == nil || node.Boot == "") && !w.view.Group().Settings.Unsteered
	for _, h := range byWanted(route.NextHops) {
		if h.Node() == r.Node {
			w.progress(&d, route, h, node)
		}
	}
	if d.State == records.NodeNone && node != nil && !elsewhere(r.Code) {
		d.Since, d.Time = obstacle(node)
	}
	return d
}

// elsewhere tells of reasons that are not about the node: there are as many of those as there are nodes.
func elsewhere(c leader.Code) bool {
	return c == leader.NoEndpoint || c == leader.EndpointNotReady || c == leader.MovedAway || c == leader.GivenUp
}

// byWanted puts hops that are withdrawn first: what is said of a wanted one stands then.
func byWanted(hops []fsm.NextHop) []fsm.NextHop {
	out := slices.Clone(hops)
	slices.SortStableFunc(out, func(a, b fsm.NextHop) int {
		if a.Withdrawing == b.Withdrawing {
			return 0
		}
		if a.Withdrawing {
			return -1
		}
		return 1
	})
	return out
}

// progress says where a hop of a node stands, and on whom the next step hangs.
func (w *whyRenderer) progress(d *records.WhyNode, route *fsm.Route, h fsm.NextHop, node *fsm.Node) {
	d.State, d.Address, d.Since, d.Time = string(w.view.HopState(route, h)), h.Address().String(), maybe(h.Since), timeOf(route.History, h.Since)
	d.WaitsFor = []string{}
	switch state := fsm.HopState(d.State); {
	case state == fsm.HopWithdrawing && !d.Wanted:
		d.WaitsFor, d.Speaker = append(d.WaitsFor, w.x.Lagging(h)...), w.x.HeldByNode(h)
	case state == fsm.HopWanted && d.Wanted:
		d.Failed = node != nil && slices.Contains(node.Failed, route.Prefix)
		d.WaitsFor = append(d.WaitsFor, string(h.Node()))
	case state == fsm.HopAcknowledged && d.Wanted && w.view.NodesAnnounce():
		d.Speaker = true
	case state == fsm.HopAcknowledged && d.Wanted:
		d.Unreached = w.view.WhyUnreached(route, h)
		for _, m := range w.members {
			d.WaitsFor = append(d.WaitsFor, m.Name)
		}
	}
	for _, m := range w.view.Announcers(route, h) {
		d.Members = append(d.Members, m.Name)
	}
}

// obstacle is since when something is in a node's way, as its history has it.
func obstacle(n *fsm.Node) (*records.Revision, string) {
	for _, t := range slices.Backward(n.History) {
		if !n.Eligible && strings.HasPrefix(t.What, "not eligible") || n.Liveness != fsm.NodeUp && t.What == n.Liveness.String() {
			return maybe(t.Revision), stamp(t.AtUnixMilli)
		}
	}
	return nil, ""
}

// timeOf finds when a revision was decided.
func timeOf(trail fsm.Trail, at fsm.Revision) string {
	for _, t := range trail {
		if t.Revision == at {
			return stamp(t.AtUnixMilli)
		}
	}
	return ""
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

// waitingOn says on whom what the plan explains of a Service hangs.
func waitingOn(e leader.Explanation) []records.WhyPending {
	switch e.Code {
	case leader.WaitsForEvidence, leader.WaitsForQuarantine:
		return []records.WhyPending{{On: "source", What: e.Text}}
	case leader.WaitsForMend:
		return []records.WhyPending{{On: "user", What: e.Text}}
	}
	return nil // what its addresses wait for is said with them, and what waits for an operator with the holds
}

// pendingOf says what is waited for at an address.
func pendingOf(a *records.WhyAddress) []records.WhyPending {
	var out []records.WhyPending
	wait := func(n *records.WhyNode, on, what string) {
		for _, name := range n.WaitsFor {
			out = append(out, records.WhyPending{On: on, Name: name, What: fmt.Sprintf(what, a.Address, n.Node), Since: n.Since})
		}
	}
	for i := range a.Nodes {
		switch n := &a.Nodes[i]; {
		case n.Wanted && (n.State == records.NodePlanned || n.State == string(fsm.HopWithdrawing)):
			out = append(out, records.WhyPending{On: "leader", What: "has yet to commit " + n.Node + " as a next hop of " + a.Address})
		case !n.Wanted && n.State != records.NodeNone && n.State != string(fsm.HopWithdrawing):
			out = append(out, records.WhyPending{On: "leader", What: "has yet to withdraw " + a.Address + " via " + n.Node})
		case n.Failed:
			wait(n, "node", "could not carry out %s on %s; the agent's log there says why")
		case n.State == string(fsm.HopWanted) && n.NoAgent:
			wait(n, "node", "has not acknowledged %[1]s: no agent of it was ever heard of; start `fairlead agent` there")
		case n.State == string(fsm.HopWanted):
			wait(n, "node", "has not acknowledged %[1]s yet; look at its agent")
		case n.State == string(fsm.HopAcknowledged) && n.Unreached != "" && a.OnSegment:
			// its segment knows of it
		case n.State == string(fsm.HopAcknowledged) && n.Unreached != "":
			pending := records.WhyPending{On: "operator", What: a.Address + " is announced to no BGP peer: " + n.Unreached}
			if !slices.Contains(out, pending) {
				out = append(out, pending)
			}
		case n.State == string(fsm.HopAcknowledged) && len(a.Peers) > 0:
			wait(n, "member", "has not announced %s via %s yet")
			if n.Speaker {
				out = append(out, records.WhyPending{On: "node", Name: n.Node, What: "has not announced " + a.Address + " itself yet", Since: n.Since})
			}
		case n.State == string(fsm.HopWithdrawing):
			wait(n, "member", "has not withdrawn %s via %s yet, or a switch may hold it still")
			if n.Speaker {
				out = append(out, records.WhyPending{On: "node", Name: n.Node, What: "has not withdrawn " + a.Address + " itself yet, or a switch may hold it still", Since: n.Since})
			}
		}
	}
	return out
}

// holds are those whose subjects the Service depends on.
func (w *whyRenderer) holds(d *records.WhyService) []records.WhyHold {
	about := map[[2]string]bool{{string(world.KindService), d.Name}: true, {string(world.KindEndpointSlice), d.Name}: true}
	for i := range d.Addresses {
		about[[2]string{string(world.KindPool), d.Addresses[i].Pool}] = true
		for _, n := range d.Addresses[i].Nodes {
			if n.State != records.NodeNone {
				about[[2]string{string(world.KindNode), n.Node}] = true
			}
		}
	}
	out := []records.WhyHold{}
	for _, h := range fsm.List[*fsm.Hold](w.view, fsm.TableHolds) {
		touches := slices.ContainsFunc(h.Subjects, func(s string) bool {
			name, _, _ := strings.Cut(s, " uid=")
			return about[[2]string{h.Of, name}]
		})
		if touches {
			out = append(out, records.WhyHold{ID: string(h.ID), Of: h.Of, Why: h.Why, Since: revision(h.Since), Released: h.Released})
		}
	}
	return out
}

// history joins the trails of a Service, of its routes, and of the nodes that are or were its next hops. The record
// bounds each of them.
func (w *whyRenderer) history(d *records.WhyService) []records.WhyTransition {
	out := []records.WhyTransition{}
	add := func(of string, trail fsm.Trail) {
		for _, t := range trail {
			out = append(out, records.WhyTransition{
				Revision: revision(t.Revision), Term: t.By().Term, Time: stamp(t.AtUnixMilli), Of: of, Actor: t.By().Actor, Reason: t.By().Reason, Change: t.What,
			})
		}
	}
	if s, ok := fsm.Get[*fsm.Service](w.view, fsm.TableServices, d.Name); ok {
		add("service", s.History)
	}
	if m, ok := fsm.Get[*fsm.Move](w.view, fsm.TableMoves, d.Name); ok {
		add("move", m.History)
	}
	nodes := map[string]bool{}
	for i := range d.Addresses {
		a := &d.Addresses[i]
		for _, p := range routeOf(w.view, a.Address) {
			add("route "+p.Key(), p.(*fsm.Route).History)
		}
		for _, n := range a.Nodes {
			if n.State == records.NodeNone && elsewhere(leader.Code(n.Code)) || nodes[n.Node] {
				continue
			}
			nodes[n.Node] = true
			if node, ok := fsm.Get[*fsm.Node](w.view, fsm.TableNodes, n.Node); ok {
				add("node "+n.Node, node.History)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b records.WhyTransition) int {
		return cmp.Or(cmp.Compare(a.Revision.Epoch, b.Revision.Epoch), cmp.Compare(a.Revision.Index, b.Revision.Index))
	})
	return out
}

// summary says in a sentence how a Service is, of a group that has BGP peers or none.
func summary(d *records.WhyService, peers bool) string {
	switch {
	case d.State == records.ServiceNotOurs:
		return "not served by this group: " + d.Reasons[0].Text
	case d.State == records.ServiceDeleting && len(d.Addresses) == 0 && len(d.Reasons) > 0 && d.Reasons[0].Code == string(leader.Deleting):
		return d.Reasons[0].Text
	case d.State == records.ServiceDeleting && len(d.Reasons) > 0:
		return "being taken back: " + d.Reasons[0].Text
	case d.State == records.ServiceDeleting:
		return "being taken back"
	case len(d.Addresses) == 0 && len(d.Reasons) > 0:
		return "has no address: " + d.Reasons[0].Text
	case len(d.Addresses) == 0:
		return "has no address; none was decided on yet"
	}
	var parts []string
	for i := range d.Addresses {
		a := &d.Addresses[i]
		switch {
		case a.Announced > 0 && a.OnSegment:
			parts = append(parts, fmt.Sprintf("%s is announced via %d of %d nodes, and %s", a.Address, a.Announced, len(a.Nodes), answers(a)))
		case a.Announced > 0:
			parts = append(parts, fmt.Sprintf("%s is announced via %d of %d nodes", a.Address, a.Announced, len(a.Nodes)))
		case a.OnSegment && acknowledged(a) > 0:
			parts = append(parts, a.Address+" is set up, and "+answers(a))
		case peers && unreached(a) != "":
			parts = append(parts, a.Address+" is announced to no BGP peer: "+unreached(a))
		case !peers && acknowledged(a) > 0:
			parts = append(parts, fmt.Sprintf("%s is set up on %d of %d nodes, and the group has no BGP peer to announce it to", a.Address, acknowledged(a), len(a.Nodes)))
		case a.Releasing:
			parts = append(parts, a.Address+" is given up")
		case len(a.Reasons) > 0:
			parts = append(parts, a.Address+" is not announced: "+a.Reasons[0].Text)
		default:
			parts = append(parts, a.Address+" is not announced yet")
		}
	}
	return strings.Join(parts, "; ")
}

// answers says who answers for an address on its segment.
func answers(a *records.WhyAddress) string {
	if a.Holder == "" {
		return "no node answers for it on its segment yet (`fairlead get leases`)"
	}
	return a.Holder + " answers for it on its segment"
}

// unreached says why an address is announced to nobody that speakers have on their sessions, empty where that is not so.
func unreached(a *records.WhyAddress) string {
	for i := range a.Nodes {
		if a.Nodes[i].Unreached != "" {
			return a.Nodes[i].Unreached
		}
	}
	return ""
}

// acknowledged counts the nodes that could be announced.
func acknowledged(a *records.WhyAddress) (n int) {
	for i := range a.Nodes {
		if a.Nodes[i].State == string(fsm.HopAcknowledged) {
			n++
		}
	}
	return n
}
