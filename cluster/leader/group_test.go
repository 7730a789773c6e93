// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// failer is what testing.T, testing.B and rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// group is a record without a group around it: what is proposed is applied at once.
type group struct {
	t     failer
	state *fsm.State
	// entry is how many proposals settle puts into an entry; 7 if it is zero.
	entry int
	// watch, if any, is shown the record after each entry.
	watch func(*fsm.View)
}

func newGroup(t failer) *group { return newGroupOf(t, fsm.NewestFormat) }

// newGroupOf is one whose record is of an older format.
func newGroupOf(t failer, format uint32) *group {
	g := &group{t: t, state: fsm.New()}
	g.must(&fsm.InitGroup{Group: "test", Format: format})
	return g
}

// propose applies proposals as entries of at most max commands, and gives their outcomes.
func (g *group) propose(proposals []fsm.Proposal, max int) []fsm.Outcome {
	g.t.Helper()
	var out []fsm.Outcome
	for len(proposals) > 0 {
		n := min(max, len(proposals))
		out = append(out, fsmtest.Commit(g.t, g.state, proposals[:n]...)...)
		proposals = proposals[n:]
		if g.watch != nil {
			g.watch(g.state.Read())
		}
	}
	return out
}

// must applies commands that nobody may refuse.
func (g *group) must(cs ...fsm.Command) {
	g.t.Helper()
	for _, c := range cs {
		for _, o := range g.propose([]fsm.Proposal{{Actor: "test", Command: c}}, 1) {
			if err := o.Err(); err != nil {
				g.t.Fatalf("%T: %v", c, err)
			}
		}
	}
}

// maxRounds is within how many plans, each made of what the one before left, everything must come to rest.
const maxRounds = 6

// settle plans and applies until nothing is left to do. Every proposal must be accepted: a plan that is refused was
// wrong about the record. It gives one line for each proposal.
func (g *group) settle(in Input) []string {
	g.t.Helper()
	var lines []string
	for round := 1; ; round++ {
		in.Record = g.state.Read()
		in.Now = time.UnixMilli(1)
		out := Plan(in)
		proposals := all(out)
		if len(proposals) == 0 {
			return lines
		}
		if round > maxRounds {
			g.t.Fatalf("still planning in round %d: %s", round, spell(proposals[0].Command))
		}
		for i, o := range g.propose(proposals, cmp.Or(g.entry, 7)) {
			line := spell(proposals[i].Command)
			if err := o.Err(); err != nil {
				g.t.Fatalf("round %d: %s: refused: %v\nall: %v", round, line, err, append(lines, line))
			}
			if _, ok := proposals[i].Command.(*fsm.ObserveView); !ok {
				lines = append(lines, line)
			}
		}
	}
}

// all gives the proposals of a plan in an order in which they may be applied.
func all(out Result) []fsm.Proposal { return slices.Concat(out.Urgent, out.Bulk) }

// peering tells which nodes peer, if nodes do.
func peering(n fsm.PeerNodes) string {
	switch {
	case !n.Speak:
		return ""
	case n.Only:
		return fmt.Sprintf("nodes=%v", n.Names)
	}
	return "nodes=all"
}

// spell writes a command in a few words.
func spell(c fsm.Command) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", c), "*fsm.")
	switch c := c.(type) {
	case *fsm.PutService:
		s := &c.Service
		out := fmt.Sprintf("%s %s endpoints=%d", name, s.ID, len(s.Endpoints))
		for _, e := range s.Endpoints {
			if e.Weight != 0 || e.Quiesced {
				out += fmt.Sprintf(" %s weighs %d", e.Address, e.Weight)
			}
			if e.Failing {
				out += fmt.Sprintf(" %s fails", e.Address)
			}
			if len(e.Hints()) > 0 {
				out += fmt.Sprintf(" %s for", e.Address)
				for _, h := range e.Hints() {
					out += fmt.Sprintf(" %s%s", h.Node, h.Zone)
				}
			}
		}
		if len(s.Advertisements()) > 0 {
			out += fmt.Sprintf(" by=%v", s.Advertisements())
		}
		if s.HealthCheckNodePort != 0 {
			out += fmt.Sprintf(" health=%d", s.HealthCheckNodePort)
		}
		for _, f := range s.Frontends {
			if f.NodePort != 0 {
				out += fmt.Sprintf(" %d=%d/%s", f.Port.Number, f.NodePort, f.Port.Protocol)
			}
		}
		if s.NodePortsIPv4 || s.NodePortsIPv6 {
			out += " node-ports=" + strings.TrimPrefix(map[bool]string{true: ",4"}[s.NodePortsIPv4]+map[bool]string{true: ",6"}[s.NodePortsIPv6], ",")
		}
		if s.ServedInside() {
			out += fmt.Sprintf(" inside=%v", s.ClusterIPs)
		}
		if s.InternalLocal {
			out += " inside-local"
		}
		if len(s.ByOthers()) > 0 {
			out += fmt.Sprintf(" by-others=%v", s.ByOthers())
		}
		if s.Deleting {
			out += " deleting"
		}
		if s.Pending.Code != "" {
			out += fmt.Sprintf(" pending=%s: %s", s.Pending.Code, s.Pending.Text)
		}
		return out
	case *fsm.DeleteService:
		return fmt.Sprintf("%s %s", name, c.ID)
	case *fsm.Allocate:
		out := fmt.Sprintf("%s %s to %s", name, c.Address, c.Service)
		if c.Pool != "" {
			out += " from " + string(c.Pool)
		}
		if c.SharingKey != "" {
			out += fmt.Sprintf(" shared=%s ports=%v", c.SharingKey, portNumbers(c.Ports))
		}
		return out
	case *fsm.AdoptAllocation:
		return name + strings.TrimPrefix(spell(&c.Allocation), "Allocate")
	case *fsm.ReleaseAllocation:
		return fmt.Sprintf("%s %s of %s", name, c.Address, c.Service)
	case *fsm.FreeAllocation:
		return fmt.Sprintf("%s %s of %s", name, c.Address, c.Service)
	case *fsm.SetRoute:
		out := fmt.Sprintf("%s %s via", name, c.Prefix)
		for _, h := range c.Hops {
			out += fmt.Sprintf(" %s=%s", h.Node, h.Address)
		}
		return out
	case *fsm.FinishWithdrawal:
		out := fmt.Sprintf("%s %s via %s excused=%v", name, c.Prefix, c.Node, c.Excused)
		if c.NodeExcused {
			out += " node"
		}
		return out
	case *fsm.PutNode:
		leaving := map[bool]string{true: "leaving"}[c.Leaving]
		others := ""
		if len(c.Others) > 0 {
			others = fmt.Sprintf("others=%v", c.Others)
		}
		return strings.Join(strings.Fields(fmt.Sprintf("%s %s eligible=%t %s %s %s %s", name, c.ID, c.Eligible, c.Zone, leaving, others, c.Why)), " ")
	case *fsm.DeleteNode:
		return fmt.Sprintf("%s %s", name, c.ID)
	case *fsm.PutPool:
		return fmt.Sprintf("%s %s", name, c.Pool.Name) + objectOf(c.Pool.Object)
	case *fsm.DeletePool:
		return fmt.Sprintf("%s %s", name, c.Name)
	case *fsm.PutPeer:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", name, c.Peer.Name, c.Peer.Neighbour(), peering(c.Peer.Nodes))) + objectOf(c.Peer.Object)
	case *fsm.DeletePeer:
		return fmt.Sprintf("%s %s", name, c.Name)
	case *fsm.PutAdvertisement:
		out := fmt.Sprintf("%s %s communities=%x", name, c.Advertisement.Name, c.Advertisement.Communities) + objectOf(c.Advertisement.Object)
		if c.Advertisement.Terms.OnlyServices {
			out += " only-services"
		}
		if c.Advertisement.Terms.Fallback {
			out += fmt.Sprintf(" fallback pools=%s peers=%s", c.Advertisement.Pools, c.Advertisement.Peers)
		}
		if n := c.Advertisement.Terms.AggregateV4; n != 0 {
			out += fmt.Sprintf(" aggregate=%d", n)
		}
		return out
	case *fsm.DeleteAdvertisement:
		return fmt.Sprintf("%s %s", name, c.Name)
	case *fsm.PutL2Advertisement:
		a := &c.Advertisement
		return fmt.Sprintf("%s %s pools=%v kept=%v nodes=%v every-node=%t interfaces=%v", name, a.Name, a.Pools, a.Kept, a.Nodes, a.EveryNode, a.Interfaces) + objectOf(a.Object)
	case *fsm.DeleteL2Advertisement:
		return fmt.Sprintf("%s %s", name, c.Name)
	case *fsm.PutNodeConfig:
		return fmt.Sprintf("%s switches=%v tables=%d,%d test=%t", name, c.Config.Switches, c.Config.InTable, c.Config.OutTable, c.Config.ReplaceDefault)
	case *fsm.RemoveMember:
		return fmt.Sprintf("%s %s", name, c.Server)
	}
	return name
}

func portNumbers(ports []fsm.Port) []string {
	var out []string
	for _, p := range ports {
		out = append(out, fmt.Sprintf("%d/%s", p.Number, p.Protocol))
	}
	return out
}

// objectOf tells which object something came from, where it has a namespace.
func objectOf(o fsm.ObjectRef) string {
	if o.Namespace == "" {
		return ""
	}
	return " of " + o.Namespace + " uid=" + o.UID
}
