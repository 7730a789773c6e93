// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// actor is who proposes what is planned.
const actor = "leader"

// format is the first format of the record with policies.
const format = 2

// Plan compares what policies ask for with the record and proposes what is missing. Once its proposals are applied it has nothing
// more to propose. What it may not do yet it explains instead.
func Plan(in Input) Result {
	p := newPlanner(in)
	if p.in.Record.Group().Format < format {
		for _, o := range p.policies() {
			p.explain(o.id(), WaitsForFormat, "the record's format is too old to hold it; run `fairlead raft finalize` once all members are of this release")
		}
		return p.out
	}
	if !p.planTunnels() {
		p.resolveAll()
		p.keepAbsent()
		p.settleProxyPorts()
		p.leadToProxies()
		p.tellLosers()
		p.propose()
	}
	p.numberNodes()
	slices.SortStableFunc(p.out.Waiting, func(a, b Explanation) int { return strings.Compare(a.Name, b.Name) })
	return p.out
}

// planner is one run of Plan. Its maps are for looking up; what leaves it goes by sorted lists.
type planner struct {
	in       Input
	out      Result
	have     map[fsm.PolicyID]*fsm.Policy
	services map[world.ID]*world.Service
	nodes    map[fsm.NodeID]*world.Node
	pods     map[world.ID]*world.Pod
	// hostPorts are the pods that have any, by node.
	hostPorts map[string][]*world.Pod

	rows    []*fsm.Policy // that the record shall have, in order
	proxies []proxying    // of these, those that lead to proxy addresses
}

func newPlanner(in Input) *planner {
	if in.MayRemove == nil {
		in.MayRemove = func(world.Kind, world.ID) bool { return false }
	}
	p := &planner{in: in, have: map[fsm.PolicyID]*fsm.Policy{}, services: map[world.ID]*world.Service{}, nodes: map[fsm.NodeID]*world.Node{}, pods: map[world.ID]*world.Pod{}, hostPorts: map[string][]*world.Pod{}}
	for _, r := range fsm.List[*fsm.Policy](in.Record, fsm.TablePolicies) {
		p.have[r.ID] = r
	}
	for _, s := range in.Services {
		p.services[s.ID] = s
	}
	for _, n := range in.Nodes {
		p.nodes[fsm.NodeID(n.Name)] = n
	}
	for _, o := range in.Pods {
		p.pods[o.ID] = o
		if len(o.HostPorts) > 0 {
			p.hostPorts[o.Node] = append(p.hostPorts[o.Node], o)
		}
	}
	return p
}

// policy is an object of either kind.
type policy struct {
	kind world.Kind
	*world.Meta
	*world.Redirect
}

func (o policy) id() fsm.PolicyID { return fsm.PolicyID(string(o.kind) + "/" + o.Name) }

// policies are the objects that are there to stay, in order of their ids.
func (p *planner) policies() (out []policy) {
	if p.in.Off {
		return nil
	}
	for _, o := range p.in.Balancing {
		out = append(out, policy{world.KindBalancingPolicy, &o.Meta, &o.Redirect})
	}
	for _, o := range p.in.Local {
		out = append(out, policy{world.KindLocalRedirect, &o.Meta, &o.Redirect})
	}
	return slices.DeleteFunc(out, func(o policy) bool { return o.Deleting })
}

// ObjectOf names the policy that a policy comes from.
func ObjectOf(id fsm.PolicyID) (world.Kind, world.ID) {
	kind, name, _ := strings.Cut(string(id), "/")
	return world.Kind(kind), world.ID{Name: name}
}

// keepAbsent keeps the policies whose policies are not there to be seen, unless those are surely gone.
func (p *planner) keepAbsent() {
	wanted := map[fsm.PolicyID]bool{}
	for _, r := range p.rows {
		wanted[r.ID] = true
	}
	for _, r := range fsm.List[*fsm.Policy](p.in.Record, fsm.TablePolicies) {
		kind, id := ObjectOf(r.ID)
		if wanted[r.ID] || p.in.Off || p.in.MayRemove(kind, id) {
			continue
		}
		kept := *r
		if r.Mode == string(world.ToProxies) {
			p.stillProxied(&kept)
		} else {
			kept.Backends = p.stillThere(r)
		}
		if kept.Pending.Code == WaitsForWinner {
			kept.Pending = fsm.Pending{} // as may still be
		}
		p.rows = append(p.rows, &kept)
		p.explain(r.ID, WaitsForEvidence, "its policy is absent from the sources, and not certain to be gone")
	}
	slices.SortStableFunc(p.rows, func(a, b *fsm.Policy) int { return strings.Compare(string(a.ID), string(b.ID)) })
}

// propose brings the record to the rows.
func (p *planner) propose() {
	stays := map[fsm.PolicyID]bool{}
	for _, r := range p.rows {
		stays[r.ID] = true
		if len(r.Pending.Text) > fsm.MaxPending {
			r.Pending.Text = fsm.Text(r.Pending.Text, fsm.MaxPending)
		}
		if r.Pending.Code != "" {
			p.explain(r.ID, r.Pending.Code, r.Pending.Text)
		}
		if old := p.have[r.ID]; old == nil || !same(old, r) {
			p.say("policy "+string(r.ID), &fsm.PutPolicy{Policy: *r})
		}
	}
	for _, r := range fsm.List[*fsm.Policy](p.in.Record, fsm.TablePolicies) {
		switch {
		case stays[r.ID]:
		case !p.in.Record.Group().Quarantine.IsZero():
			p.explain(r.ID, WaitsForEvidence, "nothing is removed while the restored record is in quarantine")
		default:
			p.say("policy is gone", &fsm.DeletePolicy{ID: r.ID, UID: r.UID})
		}
	}
}

// numberNodes gives ids to the nodes of the record that have none: what stands in their annotations, if that is nobody else's.
func (p *planner) numberNodes() {
	if p.in.Off {
		return
	}
	for _, n := range fsm.List[*fsm.Node](p.in.Record, fsm.TableNodes) {
		if seen := p.nodes[n.ID]; seen != nil && n.Number == 0 {
			p.say("node without id", &fsm.NumberNode{ID: n.ID, Number: seen.NodeID})
		}
	}
}

func (p *planner) say(reason string, c fsm.Command) {
	p.out.Proposals = append(p.out.Proposals, fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: p.in.Now.UnixMilli(), Command: c})
}

func (p *planner) explain(id fsm.PolicyID, code, text string) {
	p.tell(fsm.TablePolicies, string(id), code, text)
}

func (p *planner) tell(table fsm.Table, name, code, text string) {
	p.out.Waiting = append(p.out.Waiting, Explanation{table, name, code, text})
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// same compares all but the version, and what Apply gives.
func same(a, b *fsm.Policy) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.Created == b.Created && slices.Equal(a.Nodes, b.Nodes) && a.EveryNode == b.EveryNode && a.Outside == b.Outside &&
		a.Service == b.Service && slices.Equal(a.Captures, b.Captures) && a.Mode == b.Mode && slices.Equal(a.Backends, b.Backends) &&
		sameProbe(a.Probe, b.Probe) && a.SpareOwn == b.SpareOwn && a.FallThrough == b.FallThrough && a.Pending == b.Pending &&
		slices.EqualFunc(a.Proxied, b.Proxied, fsm.ProxiedPod.Alike)
}

func sameProbe(a, b fsm.Probe) bool {
	return a.Type == b.Type && a.Port == b.Port && a.Path == b.Path && slices.Equal(a.Statuses, b.Statuses) && a.Interval == b.Interval &&
		a.Timeout == b.Timeout && a.Healthy == b.Healthy && a.Unhealthy == b.Unhealthy
}
