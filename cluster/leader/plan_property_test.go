// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// Few names of everything, so that they collide.
var (
	drawnServices  = []string{"s0", "s1", "s2", "s3", "s4"}
	drawnNodes     = []string{"n0", "n1", "n2"}
	drawnPools     = []string{"p0", "p1"}
	drawnPolicies  = []string{"q0", "q1"}
	drawnMembers   = []string{"m0", "m1"}
	drawnAddresses = []string{"203.0.113.1", "203.0.113.2", "203.0.113.5", "203.0.113.9", "2001:db8::1", "2001:db8::5"}
	drawnShown     = append([]string{"198.51.100.7", "198.51.100.8", "10.96.0.2", "2001:db8:b::7"}, drawnAddresses...)
)

func some(t *rapid.T, of []string, max int, label string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, max, rapid.ID).Draw(t, label)
}

func one[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

func drawService(t *rapid.T) string {
	line := "service " + one(t, "service", drawnServices...)
	if ips := some(t, drawnAddresses, 2, "externalIPs"); len(ips) > 0 && rapid.Bool().Draw(t, "typed") {
		line += " ip=" + strings.Join(ips, ",")
	} else if len(ips) > 0 && rapid.Bool().Draw(t, "requested") {
		line += " request=" + strings.Join(ips, ",")
	}
	if shown := some(t, drawnShown, 2, "status"); len(shown) > 0 && rapid.Bool().Draw(t, "shown") {
		line += " shown=" + strings.Join(shown, ",") + one(t, "proxied", "", "", " proxied=198.51.100.7", " proxied=198.51.100.8")
	}
	line += one(t, "selector", "", " selector=x", " selector=x", " selector=y") + one(t, "sharing", "", "", " share=a", " share=b") + one(t, "port", "", " port=80", " port=443", " port=80,443", " port=80/udp", " port=80:30080", " port=443:30080,80:30081", " port=80/udp:30080")
	line += one(t, "policy", "", "", " local") + one(t, "health check", "", " health=30100", " health=30101") + one(t, "nextHops", "", "", " all") + one(t, "age", "", " created=1", " created=2")
	line += one(t, "families", "", "", " families=4", " families=6", " families=4,6 policy=PreferDualStack", " families=4,6 policy=RequireDualStack")
	line += one(t, "pool", "", "", " pool=p1") + one(t, "type", "", "", "", "", " type=ClusterIP", " type=NodePort", " type=NodePort", " class=other", " deleting", " type=NodePort headless", " headless") + one(t, "uid", "", "", " uid=again")
	line += one(t, "inside", "", " cluster=10.96.0.1", " cluster=10.96.0.1", " cluster=10.96.0.2", " cluster=fd96::1,10.96.0.2") + one(t, "internal policy", "", "", " inside-local")
	line += one(t, "weights", "", "", "", " weights=node:n1:0", " weights=node:n1:2,node:n*:0")
	line += one(t, "labels", "", "", " labels=tier:gold")
	return line
}

func drawEndpoints(t *rapid.T) string {
	line := "endpoints " + one(t, "service", drawnServices...)
	n := rapid.IntRange(1, 3).Draw(t, "endpoints")
	for i := range n {
		family := one(t, "family", "10.0.0.", "10.0.0.", "2001:db8:a::")
		line += fmt.Sprintf(" %s/%s%d%s", one(t, "on", "n0", "n1", "n2", "n9"), family, i+1, one(t, "state", "", "", "", "~serving", "~no", "~odd"))
	}
	return line
}

func drawNode(t *rapid.T) string {
	name := one(t, "node", drawnNodes...)
	line := "node " + name + " 192.0.2.1" + name[1:]
	return line + one(t, "v6", " 2001:db8:f::"+name[1:], " 2001:db8:f::"+name[1:], "") + one(t, "condition", "", "", "", " notready", " excluded", " cordoned", " cordoned", " taint=leaving")
}

func drawPool(t *rapid.T) string {
	line := "pool " + one(t, "pool", drawnPools...)
	line += " " + one(t, "range", "203.0.113.1-203.0.113.2", "203.0.113.2-203.0.113.6", "203.0.113.5-203.0.113.6", "2001:db8::1-2001:db8::2")
	return line + one(t, "second", "", "", " 2001:db8::5-2001:db8::6") + one(t, "manual", "", "", " manual") + one(t, "drain", "", "", "", " drain") + one(t, "priority", "", " priority=1") + one(t, "for", "", "", "", " for=elsewhere", " of=kind:a", " for=elsewhere of=kind:b") +
		one(t, "only", "", "", "", " only=tier:gold")
}

func drawPolicy(t *rapid.T) string {
	line := "policy " + one(t, "policy", drawnPolicies...) + one(t, "about", "", " for=default", " for=elsewhere", " of=kind:a", " for=elsewhere of=kind:b")
	return line + one(t, "max", "", " max=0", " max=1", " max=2") + one(t, "external", "", "", " external=none", " external=203.0.113.9-203.0.113.9,2001:db8::1-2001:db8::4")
}

func drawNamespace(t *rapid.T) string {
	return "namespace default" + one(t, "label", "", " kind:a", " kind:b")
}

// drawStep changes the world, the group or the sight of it, by at most one thing.
func drawStep(t *rapid.T, s *scene) string {
	v := s.group.state.Read()
	switch what := one(t, "step", "service", "service", "endpoints", "endpoints", "node", "pool", "policy", "namespace", "delete", "lose", "blind", "look", "ack", "ack", "liveness", "announced", "announced", "renew", "drain", "drain", "move", "move", "externals"); what {
	case "externals":
		s.strict = !s.strict
		return fmt.Sprintf("externals denied=%t", s.strict)
	case "service", "endpoints", "node", "pool", "policy", "namespace":
		s.blind = false
		line := map[string]func(*rapid.T) string{"service": drawService, "endpoints": drawEndpoints, "node": drawNode, "pool": drawPool, "policy": drawPolicy, "namespace": drawNamespace}[what](t)
		f := strings.Fields(line)
		s.kept[f[0]+" "+f[1]] = false
		s.line(line)
		return line
	case "delete", "lose":
		kind := one(t, "kind", "service", "endpoints", "node", "pool", "policy", "namespace")
		name := one(t, "name", map[string][]string{"service": drawnServices, "endpoints": drawnServices, "node": drawnNodes, "pool": drawnPools, "policy": drawnPolicies, "namespace": {"default"}}[kind]...)
		s.remove(kind, name)
		s.kept[kind+" "+name] = what == "lose"
		return what + " " + kind + " " + name
	case "blind":
		s.blind = true
		return what
	case "look":
		s.blind = false
		return what
	case "ack":
		for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
			s.report(t, "ack", string(n.ID), v)
		}
		return what
	case "liveness":
		nodes := fsm.List[*fsm.Node](v, fsm.TableNodes)
		if len(nodes) == 0 {
			return "nothing"
		}
		n := rapid.SampledFrom(nodes).Draw(t, "node")
		what = one(t, "liveness", "up", "agent-down", "down")
		s.report(t, what, string(n.ID), v)
		return what + " " + string(n.ID)
	case "drain":
		about := one(t, "drain of", append(slices.Clone(drawnNodes), "service/s0", "service/s1")...)
		undo := rapid.Bool().Draw(t, "undo")
		s.drainIfKnown(about, undo)
		return fmt.Sprintf("drain %s undo=%t", about, undo)
	case "move":
		service, to := one(t, "service", drawnServices...), one(t, "to", append(slices.Clone(drawnNodes), "")...)
		return "move " + service + " to " + to + s.moveIfMay(service, fsm.NodeID(to))
	case "announced":
		m := one(t, "member", drawnMembers...)
		s.report(t, what, m, v)
		return what + " " + m
	default:
		s.blind = s.blind || rapid.Bool().Draw(t, "blind")
		_, epoch, _ := s.group.state.Identity()
		s.group.must(&fsm.NewEpoch{Group: "test", Epoch: epoch + 1, Cause: "restored"})
		return "renew"
	}
}

// drainIfKnown begins or ends a drain of what the record knows.
func (s *scene) drainIfKnown(about string, undo bool) {
	v := s.group.state.Read()
	_, node := fsm.Get[*fsm.Node](v, fsm.TableNodes, about)
	_, service := fsm.Get[*fsm.Service](v, fsm.TableServices, "default/"+strings.TrimPrefix(about, "service/"))
	if node || service {
		s.drain(about, undo)
	}
}

// moveIfMay moves a Service to a node, or ends that; it says what the record answers otherwise.
func (s *scene) moveIfMay(service string, to fsm.NodeID) string {
	var c fsm.Command = &fsm.BeginMove{Service: fsm.ServiceID("default/" + service), Node: to}
	if to == "" {
		c = &fsm.EndMove{Service: fsm.ServiceID("default/" + service)}
	}
	if err := s.group.propose([]fsm.Proposal{{Actor: "test", Command: c}}, 1)[0].Err(); err != nil {
		return ": " + err.Error()
	}
	return ""
}

// begin is a world in which the drawn steps meet.
func begin(s *scene) []string {
	story := []string{
		"node n0 192.0.2.10 2001:db8:f::0", "node n1 192.0.2.11 2001:db8:f::1", "node n2 192.0.2.12", "pool p0 203.0.113.1-203.0.113.2",
		"service s0 ip=203.0.113.9", "endpoints s0 n0/10.0.0.1 n1/10.0.0.2", "service s1 ip=203.0.113.9 port=443", "endpoints s1 n1/10.0.0.3 n2/10.0.0.4",
		"service s2", "endpoints s2 n0/10.0.0.5",
	}
	for _, line := range story {
		s.line(line)
	}
	s.group.settle(s.input())
	return story
}

// Whatever happens in whatever order: planning comes to rest within a few rounds, nothing that it proposes is
// refused, and what it leaves is what a simple account of the rules asks for.
func TestPropertyPlanKeepsTheRules(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newScene(t)
		s.options.AsideCordoned = rapid.Bool().Draw(t, "cordons are heeded")
		s.options.NodePorts = rapid.Bool().Draw(t, "node ports are served")
		s.options.ClusterIPs = rapid.Bool().Draw(t, "ClusterIPs are served")
		if rapid.Bool().Draw(t, "taints are heeded") {
			s.options.AsideTaints = []string{"leaving"}
		}
		begin(s)
		keepRules(t, s, drawStep)
	})
}

// keepRules holds the record to the rules after every step.
func keepRules(t *rapid.T, s *scene, draw func(*rapid.T, *scene) string) {
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		before := s.group.state.Read()
		seen := []*fsm.View{before}
		s.group.watch = func(v *fsm.View) { seen = append(seen, v) }
		step := draw(t, s)
		t.Logf("step: %s", step)
		reported := s.group.state.Read()
		lines := s.group.settle(s.input())
		t.Logf("planned: %s", strings.Join(lines, "; "))
		a := &account{before: before, seen: seen, after: s.group.state.Read(), scene: s, reported: reported, step: step}
		if why := a.check(); why != "" {
			t.Fatalf("%s\nbegin: %s\nrecord:\n%s", why, strings.Join(begin(newScene(t)), "\n       "), s.show())
		}
	}
}

// Of Services that name no address, those with one key come together, and the rules hold.
func TestPropertyKeysAloneBringServicesTogether(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newScene(t)
		s.group.entry = 1 // an address that goes and comes back is seen to have gone
		begin(s)
		keepRules(t, s, func(t *rapid.T, s *scene) string {
			if rapid.Bool().Draw(t, "anything else") {
				return drawStep(t, s)
			}
			line := drawSharer(t)
			s.line(line)
			s.blind, s.kept["service "+strings.Fields(line)[1]] = false, false
			return line
		})
	})
}

// drawSharer is a Service that is to have an address of a pool, mostly with a key.
func drawSharer(t *rapid.T) string {
	line := "service " + one(t, "service", drawnServices...) + one(t, "sharing", "", " share=a", " share=a", " share=a", " share=b")
	line += one(t, "port", "", " port=443", " port=53", " port=53/udp", " port=80,443") + one(t, "policy", "", "", "", " local") + one(t, "pool", "", "", " pool=p1")
	line += one(t, "families", "", " families=4", " families=6", " families=4,6 policy=PreferDualStack", " families=4,6 policy=RequireDualStack")
	return line + one(t, "age", "", " created=1", " created=2")
}

// account checks the record after a step by its own means: maps of the world, and rules as the design words them.
type account struct {
	scene                   *scene
	step                    string
	before, reported, after *fsm.View
	seen                    []*fsm.View // before, and after each entry since then
}

func (a *account) check() string {
	for _, check := range []func() string{
		a.sharing, a.ported, a.inside, a.byOthers, a.handedOn, a.kept, a.asked, a.checked, a.weighed, a.takenOver, a.drained, a.limited, a.together, a.sticky, a.nodes, a.nextHops, a.madeFirst, a.lastHops,
		a.lastDrained, a.lastMoved, a.removals,
	} {
		if why := check(); why != "" {
			return why
		}
	}
	return ""
}

func owned(v *fsm.View, s fsm.ServiceID) (out []netip.Addr) {
	for _, h := range v.Addresses(s) {
		if !h.Releasing {
			out = append(out, h.Address)
		}
	}
	return out
}

// shown are the Services that a view shows as ours to serve: load balancers, and others as far as they are served.
func (a *account) shown() map[fsm.ServiceID]*world.Service {
	out := map[fsm.ServiceID]*world.Service{}
	for i := range a.scene.world.Services {
		s := a.scene.world.Services[i]
		whole := s.Type == world.LoadBalancer && s.Extras().Class == "" && !s.Headless
		if !whole { // K2, K4, K6
			s.HealthCheckNodePort = 0
			if s.Extra != nil {
				s.Extra.Requested = nil
			}
			if s.Type == world.LoadBalancer || s.Headless {
				s.ExternalIPs = nil
			}
		}
		inside := a.scene.options.ClusterIPs && !s.Headless && len(s.ClusterIPs) > 0
		if !s.Deleting && (whole || len(s.ExternalIPs) > 0 || a.scene.options.NodePorts && len(nodePortsOf(s)) > 0 || inside || len(a.givenByOthers(s)) > 0) {
			out[fsm.ServiceID(s.ID.String())] = s
		}
	}
	return out
}

// toldUsers are the addresses that a Service is shown which can be ours to serve as a whole.
func toldUsers(w *world.Service) []netip.Addr {
	if partly(w) || w.Headless {
		return nil
	}
	return w.Shown
}

// nodePortsOf are the node ports that a Service asks for, of its ports.
func nodePortsOf(w *world.Service) map[fsm.Port]uint16 {
	out := map[fsm.Port]uint16{}
	for _, p := range w.Ports {
		if p.NodePort != 0 && w.Type != world.ClusterIP && !w.Headless {
			out[fsm.Port{Protocol: protocolOf(p.Protocol), Number: p.Port}] = p.NodePort
		}
	}
	return out
}

// ported, K2: nodes are told of every node port that a Service asks for, in its families, and each is one Service's: whose it was,
// else the older one's. The others are told so.
func (a *account) ported() string {
	if !a.scene.options.NodePorts {
		return ""
	}
	had, have := portOwners(a.before), portOwners(a.after)
	for port, owners := range have {
		if len(owners) > 1 {
			return fmt.Sprintf("node port %d belongs to %v", port.Number, owners)
		}
	}
	if a.scene.blind {
		return ""
	}
	shown := a.shown()
	for id, w := range shown {
		s, _ := fsm.Get[*fsm.Service](a.after, fsm.TableServices, string(id))
		asked := nodePortsOf(w)
		v4, v6 := w.Families == 0, w.Families == 0
		if len(w.ClusterIPs) > 0 && w.Families == 0 {
			v4, v6 = false, false
		}
		for _, c := range w.ClusterIPs {
			v4, v6 = v4 || c.Is4(), v6 || c.Is6()
		}
		for _, f := range w.Families.List() {
			v4, v6 = v4 || f == world.IPv4, v6 || f == world.IPv6
		}
		if any := len(asked) > 0; s.NodePortsIPv4 != (any && v4) || s.NodePortsIPv6 != (any && v6) {
			return fmt.Sprintf("%s asks for node ports %v in %v, and is served IPv4=%t IPv6=%t", id, asked, w.Families.List(), s.NodePortsIPv4, s.NodePortsIPv6)
		}
		for _, f := range s.Frontends {
			want := fsm.Port{Protocol: f.Port.Protocol, Number: asked[f.Port]}
			switch owners := have[want]; {
			case f.NodePort == want.Number:
				continue
			case f.NodePort != 0 || len(owners) == 0:
				return fmt.Sprintf("%s has node port %d, asks for %d, and that belongs to %v", id, f.NodePort, want.Number, owners)
			case s.Pending.Code == "" && a.after.Group().Quarantine.IsZero():
				return fmt.Sprintf("%s lacks node port %d and is not told why", id, want.Number)
			default:
				was, _ := fsm.Get[*fsm.Service](a.before, fsm.TableServices, string(id))
				mine := was != nil && was.UID == w.UID && slices.Contains(had[want], id)
				other := shown[owners[0]]
				if other == nil || slices.Contains(had[want], owners[0]) {
					continue // nobody says that it is gone, or it was there first
				}
				if older := w.Created != 0 && (other.Created == 0 || w.Created < other.Created); mine || older {
					return fmt.Sprintf("%s lost node port %d to %s, which came later", id, want.Number, owners[0])
				}
			}
		}
	}
	return ""
}

// inside, K1: nodes are told of every ClusterIP that a Service is shown with, and each is one Service's: one that is shown goes before one that
// nobody shows any more, and the older before the younger.
func (a *account) inside() string {
	owner := map[netip.Addr]fsm.ServiceID{}
	for _, s := range fsm.List[*fsm.Service](a.after, fsm.TableServices) {
		for _, c := range s.ClusterIPs {
			if other, taken := owner[c]; taken && a.scene.options.ClusterIPs {
				return fmt.Sprintf("ClusterIP %s is of %s and %s", c, other, s.ID)
			}
			owner[c] = s.ID
		}
	}
	if a.scene.blind {
		return ""
	}
	shown := a.shown()
	for id, w := range shown {
		s, _ := fsm.Get[*fsm.Service](a.after, fsm.TableServices, string(id))
		if !a.scene.options.ClusterIPs || w.Headless {
			if s.ServedInside() || s.InternalLocal {
				return fmt.Sprintf("%s is served inside at %v", id, s.ClusterIPs)
			}
			continue
		}
		for _, c := range w.ClusterIPs {
			other := shown[owner[c]]
			switch {
			case owner[c] == id:
			case other == nil:
				return fmt.Sprintf("ClusterIP %s of %s is nobody's who is shown, but of %q", c, id, owner[c])
			case w.Created != 0 && (other.Created == 0 || w.Created < other.Created):
				return fmt.Sprintf("ClusterIP %s of %s went to %s, which is younger", c, id, owner[c])
			}
		}
		if local := w.InternalTrafficPolicy == world.PolicyLocal; len(w.ClusterIPs) > 0 && s.InternalLocal != local {
			return fmt.Sprintf("%s: internalTrafficPolicy Local is %t, want %t", id, s.InternalLocal, local)
		}
	}
	return ""
}

// givenByOthers are the addresses that a status shows for nodes to intercept, and that are nothing of the group's (K32).
func (a *account) givenByOthers(w *world.Service) (out []netip.Addr) {
	if w.Headless || !a.scene.options.ClusterIPs && !a.scene.options.NodePorts {
		return nil
	}
	for _, x := range w.Intercepted() {
		_, ours := fsm.Get[*fsm.Route](a.after, fsm.TableRoutes, fsm.HostPrefix(x).String())
		ours = ours || len(a.after.Owners(x.String())) > 0
		for _, pool := range fsm.List[*fsm.Pool](a.after, fsm.TablePools) {
			ours = ours || pool.Contains(x)
		}
		if !ours {
			out = append(out, x)
		}
	}
	return out
}

// byOthers, K32: nodes are told of what other controllers wrote into the status of a Service, and of nothing that is the group's own, or
// inside the cluster.
func (a *account) byOthers() string {
	served := a.scene.options.ClusterIPs || a.scene.options.NodePorts
	inside := map[netip.Addr]bool{}
	services := fsm.List[*fsm.Service](a.after, fsm.TableServices)
	for _, s := range services {
		for _, c := range s.ClusterIPs {
			inside[c] = true
		}
	}
	if a.scene.blind {
		return ""
	}
	shown := a.shown()
	for _, s := range services {
		for _, x := range s.ByOthers() {
			if inside[x] || len(a.after.Owners(x.String())) > 0 {
				return fmt.Sprintf("%s is served at %s as others gave it, and that is an address of the group, or a ClusterIP", s.ID, x)
			}
		}
		w := shown[s.ID]
		switch {
		case w == nil || !a.after.Group().Quarantine.IsZero():
		case !served || w.Headless:
			if len(s.ByOthers()) > 0 {
				return fmt.Sprintf("%s is served at %v", s.ID, s.ByOthers())
			}
		default:
			for _, x := range s.ByOthers() {
				if !slices.Contains(w.Intercepted(), x) {
					return fmt.Sprintf("%s is served at %s, which others did not give it for nodes to intercept", s.ID, x)
				}
			}
			for _, x := range a.givenByOthers(w) {
				if !inside[x] && !slices.Contains(s.ByOthers(), x) {
					return fmt.Sprintf("others gave %s %s, and nodes are told of %v", s.ID, x, s.ByOthers())
				}
			}
		}
	}
	return ""
}

// portOwners are the Services that have a node port by the record and are not on their way out.
func portOwners(v *fsm.View) map[fsm.Port][]fsm.ServiceID {
	out := map[fsm.Port][]fsm.ServiceID{}
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		for _, f := range s.Frontends {
			if f.NodePort != 0 && !s.Deleting {
				port := fsm.Port{Protocol: f.Port.Protocol, Number: f.NodePort}
				out[port] = append(out[port], s.ID)
			}
		}
	}
	return out
}

// partly tells whether a Service is no load balancer of ours: no pool gives it anything.
func partly(w *world.Service) bool { return w.Type != world.LoadBalancer || w.Extras().Class != "" }

// S3: nobody has an address beside another one but by agreement, with other ports and policy Cluster.
func (a *account) sharing() string {
	services := map[fsm.ServiceID]*fsm.Service{}
	for _, s := range fsm.List[*fsm.Service](a.after, fsm.TableServices) {
		services[s.ID] = s
	}
	all := fsm.List[*fsm.Allocation](a.after, fsm.TableAllocations)
	for i, x := range all {
		for _, y := range all[:i] {
			if x.Address != y.Address || x.Releasing || y.Releasing {
				continue
			}
			sx, sy := services[x.Service], services[y.Service]
			for _, p := range sx.Ports() {
				if slices.Contains(sy.Ports(), p) && a.settledService(sx) && a.settledService(sy) {
					return fmt.Sprintf("%s and %s both answer on %s port %v", sx.ID, sy.ID, x.Address, p)
				}
			}
			if (sx.Local || sy.Local) && a.settledService(sx) && a.settledService(sy) && !a.samePods(sx, sy) {
				return fmt.Sprintf("%s and %s share %s, one is Local, and they lead to other pods", sx.ID, sy.ID, x.Address)
			}
		}
	}
	return ""
}

// samePods tells whether Services of policy Local lead to the same pods, by what is shown of them.
func (a *account) samePods(x, y *fsm.Service) bool {
	v, w := a.shown()[x.ID], a.shown()[y.ID]
	if v == nil || w == nil {
		return x.Local == y.Local
	}
	return x.Local && y.Local && v.Namespace == w.Namespace && v.PublishNotReady == w.PublishNotReady &&
		v.Extras().Selector != "" && v.Extras().Selector == w.Extras().Selector
}

// lacksPorts tells whether a Service has not got every port of an address that it owns.
func (a *account) lacksPorts(s *fsm.Service) bool {
	for _, o := range a.after.Addresses(s.ID) {
		for _, port := range s.Ports() {
			if !o.Releasing && !slices.Contains(o.Ports(), port) {
				return true
			}
		}
	}
	return false
}

// handedOn, S3: no port of an address goes from one Service to another while a node that the address led to may not know
// yet. No step has both, a Service that gives a port up and nodes that acknowledge it, so that whoever had a port in the step
// stands in the way of others until no path is left that was there when he had it.
func (a *account) handedOn() string {
	type had struct {
		address netip.Addr
		port    fsm.Port
		service fsm.ServiceID
	}
	paths := map[had][]fsm.HopSpec{} // that have been there all the time since
	for _, v := range a.seen {
		for h := range paths {
			there := hopsTo(v, h.address)
			paths[h] = slices.DeleteFunc(paths[h], func(p fsm.HopSpec) bool { return !slices.Contains(there, p) })
		}
		all := fsm.List[*fsm.Allocation](v, fsm.TableAllocations)
		for _, now := range all {
			for h, left := range paths {
				if len(left) > 0 && h.address == now.Address && h.service != now.Service && slices.Contains(now.Ports(), h.port) {
					return fmt.Sprintf("%s port %s went from %s to %s at once, while nodes it leads to may not know", h.address, h.port, h.service, now.Service)
				}
			}
		}
		for _, now := range all {
			for _, port := range now.Ports() {
				paths[had{now.Address, port, now.Service}] = hopsTo(v, now.Address)
			}
		}
	}
	return ""
}

// hopsTo are the next hops of an address, those that are being withdrawn, too.
func hopsTo(v *fsm.View, a netip.Addr) (out []fsm.HopSpec) {
	if r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(a).String()); ok {
		for _, h := range r.NextHops {
			out = append(out, fsm.HopSpec{Node: h.Node(), Address: h.Address()})
		}
	}
	return out
}

// settledService tells whether the record of a Service is followed by its addresses: not while nothing may be taken
// away.
func (a *account) settledService(s *fsm.Service) bool {
	return a.after.Group().Quarantine.IsZero() && (a.scene.blind || a.shown()[s.ID] != nil)
}

// releasing tells whether everybody who owns an address is giving it up.
func releasing(v *fsm.View, a netip.Addr) bool {
	owners := v.Owners(a.String())
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(o *fsm.Allocation) bool { return !o.Releasing })
}

// S12: what no evidence speaks against stays: Services, their addresses, and routes to where they were served.
func (a *account) kept() string {
	for _, s := range fsm.List[*fsm.Service](a.before, fsm.TableServices) {
		name := idOf(s.ID).Name
		_, exists := a.exists(s.ID)
		if s.Deleting || exists || !a.scene.blind && !a.scene.kept["service "+name] {
			continue
		}
		for _, address := range owned(a.before, s.ID) {
			if !slices.Contains(owned(a.after, s.ID), address) {
				return fmt.Sprintf("%s lost %s without evidence", s.ID, address)
			}
		}
	}
	for _, s := range fsm.List[*fsm.Service](a.before, fsm.TableServices) {
		next, ok := fsm.Get[*fsm.Service](a.after, fsm.TableServices, string(s.ID))
		if ok && !next.Deleting && (a.scene.blind || a.scene.kept["endpoints "+idOf(s.ID).Name]) && len(next.Endpoints) < len(s.Endpoints) {
			return fmt.Sprintf("%s lost endpoints without evidence", s.ID)
		}
	}
	if !a.scene.blind {
		return ""
	}
	for _, r := range fsm.List[*fsm.Route](a.reported, fsm.TableRoutes) {
		if releasing(a.reported, r.Prefix.Addr()) {
			continue // given up on evidence, before nothing could be seen; it waited for the address that replaces it
		}
		if strings.HasPrefix(a.step, "drain service/") || a.led(r.Prefix.Addr()) == 0 {
			continue // an operator took the Service away that is served there
		}
		if a.endsMove(r.Prefix.Addr()) {
			continue // or said no more that it leads where it led
		}
		if slices.ContainsFunc(r.NextHops, isWanted) && a.wantedHops(a.after, r.Prefix) == nil {
			return fmt.Sprintf("%s lost its last next hop while nothing could be seen", r.Prefix)
		}
	}
	return ""
}

func (a *account) exists(id fsm.ServiceID) (*world.Service, bool) {
	for _, s := range a.scene.world.Services {
		if s.ID.String() == string(id) && !a.scene.blind {
			return s, true
		}
	}
	return nil, false
}

// checked, K24: nodes tell of their endpoints where the Service says, as long as its policy is Local.
func (a *account) checked() string {
	if a.scene.blind || !a.after.Group().Quarantine.IsZero() {
		return ""
	}
	for _, s := range fsm.List[*fsm.Service](a.after, fsm.TableServices) {
		w := a.shown()[s.ID]
		if w == nil || s.Deleting {
			continue
		}
		want := uint16(0)
		if w.ExternalTrafficPolicy == world.PolicyLocal {
			want = w.HealthCheckNodePort
		}
		if s.HealthCheckNodePort != want {
			return fmt.Sprintf("%s has health-check node port %d, want %d", s.ID, s.HealthCheckNodePort, want)
		}
	}
	return ""
}

// weighed, K40: endpoints have the weights that the Service's rules give them; those that no slice lists any more keep what
// they had.
func (a *account) weighed() string {
	if a.scene.blind || !a.after.Group().Quarantine.IsZero() {
		return ""
	}
	for _, s := range fsm.List[*fsm.Service](a.after, fsm.TableServices) {
		w := a.shown()[s.ID]
		if w == nil || s.Deleting || a.scene.kept["endpoints "+idOf(s.ID).Name] {
			continue
		}
		for _, e := range s.Endpoints {
			want := 1
			switch fmt.Sprint(w.Choice().Weights) {
			case "[{node n1 0}]":
				if e.Node == "n1" {
					want = 0
				}
			case "[{node n1 2} {node n* 0}]":
				want = map[fsm.NodeID]int{"n1": 2, "": 1}[e.Node]
			}
			have := int(e.Weight)
			if have == 0 && !e.Quiesced {
				have = 1
			}
			if have != want {
				return fmt.Sprintf("%s of %s on %q weighs %d, want %d by %v", e.Address, s.ID, e.Node, have, want, w.Choice().Weights)
			}
		}
	}
	return ""
}

// asked: who names addresses owns those and no others, or is told why; who names none has one of each wanted family
// or is told why.
func (a *account) asked() string {
	if a.scene.blind || !a.after.Group().Quarantine.IsZero() {
		return ""
	}
	for id, w := range a.shown() {
		s, ok := fsm.Get[*fsm.Service](a.after, fsm.TableServices, string(id))
		if !ok {
			return string(id) + " is not in the record"
		}
		have := owned(a.after, id)
		typed := slices.Concat(w.ExternalIPs, w.Extras().Requested)
		if len(typed) == 0 && partly(w) {
			if len(have) > 0 || s.Pending.Code != "" && s.Pending.Code != PendingNodePort {
				return fmt.Sprintf("%s asks for no address, has %v and is pending: %s", id, have, s.Pending.Text)
			}
			continue
		}
		if len(typed) == 0 {
			if why := a.automatic(w, s, have); why != "" {
				return why
			}
			continue
		}
		for _, address := range have {
			if !slices.Contains(typed, address) {
				return fmt.Sprintf("%s owns %s, which it does not name", id, address)
			}
		}
		for _, address := range typed {
			if slices.Contains(have, address) {
				continue
			}
			if s.Pending.Code == "" {
				return fmt.Sprintf("%s names %s, does not own it and is not told why", id, address)
			}
			if slices.Contains(w.ExternalIPs, address) && len(a.after.Owners(address.String())) == 0 && a.allows(address) && !a.closed(address, w) {
				return fmt.Sprintf("%s names %s, which nobody owns, and is pending: %s", id, address, s.Pending.Text)
			}
		}
		if lacks := a.lacksPorts(s); len(have) == len(typed) && (s.Pending.Code == PendingPort) != lacks {
			return fmt.Sprintf("%s owns all that it names, lacks ports of it: %t, and is pending: %s", id, lacks, s.Pending.Text)
		}
		if len(have) == len(typed) && s.Pending.Code != "" && s.Pending.Code != PendingPort && s.Pending.Code != PendingNodePort {
			return fmt.Sprintf("%s owns all that it names and is pending: %s", id, s.Pending.Text)
		}
	}
	return ""
}

func (a *account) automatic(w *world.Service, s *fsm.Service, have []netip.Addr) string {
	count := map[world.Family]int{}
	for _, address := range have {
		count[world.FamilyOf(address)]++
	}
	wanted := w.Families.List()
	if len(wanted) == 0 {
		if len(have) > 1 {
			return fmt.Sprintf("%s has %v where one address is wanted", s.ID, have)
		}
		if len(have) == 0 && s.Pending.Code == "" {
			return fmt.Sprintf("%s has no address and is not told why", s.ID)
		}
		return ""
	}
	missing := 0
	for _, f := range wanted {
		if count[f] > 1 {
			return fmt.Sprintf("%s has %v, two of %s", s.ID, have, f)
		}
		if count[f] == 0 {
			missing++
			if free := a.freeFor(w, f); free.IsValid() && !a.awaits(w, f) && !a.full() {
				return fmt.Sprintf("%s has no %s address although %s is free", s.ID, f, free)
			}
			if shared := a.sharedFor(a.after, w, f); len(shared) > 0 && !a.awaits(w, f) {
				return fmt.Sprintf("%s has no %s address although it may share %v", s.ID, f, shared)
			}
		}
	}
	tolerated := w.FamilyPolicy == world.PreferDualStack && missing < len(wanted)
	if missing > 0 && s.Pending.Code == "" && !tolerated {
		return fmt.Sprintf("%s lacks addresses and is not told why", s.ID)
	}
	return ""
}

// awaits tells whether a Service is shown an address of a family that others have not given back yet, and will without help.
func (a *account) awaits(w *world.Service, f world.Family) bool {
	return slices.ContainsFunc(toldUsers(w), func(x netip.Addr) bool {
		r, routed := fsm.Get[*fsm.Route](a.after, fsm.TableRoutes, fsm.HostPrefix(x).String())
		given := slices.ContainsFunc(a.after.Owners(x.String()), func(o *fsm.Allocation) bool { return o.Releasing })
		runs := routed && slices.ContainsFunc(r.NextHops, func(h fsm.NextHop) bool {
			n, ok := fsm.Get[*fsm.Node](a.after, fsm.TableNodes, string(h.Node()))
			return ok && n.Liveness == fsm.NodeUp
		})
		return world.FamilyOf(x) == f && (given || runs && len(r.Closing) > 0)
	})
}

// takenOver: what users were told is a Service's own becomes so, rather than another address, also of a record that was
// restored, unless somebody else has it or is told so, too.
func (a *account) takenOver() string {
	if a.scene.blind {
		return ""
	}
	for id, w := range a.shown() {
		typed := slices.Concat(w.ExternalIPs, w.Extras().Requested)
		if len(typed) > 0 || w.Families != 0 || len(a.before.Addresses(id)) > 0 || len(toldUsers(w)) != 1 {
			continue
		}
		x := toldUsers(w)[0]
		rival := slices.ContainsFunc(a.scene.world.Services, func(o *world.Service) bool {
			return o.ID != w.ID && (slices.Contains(toldUsers(o), x) || slices.Contains(o.ExternalIPs, x) || slices.Contains(o.Extras().Requested, x))
		})
		if rival || len(a.before.Owners(x.String())) > 0 || !a.poolGives(w, x) || a.full() || slices.Contains(owned(a.after, id), x) {
			continue
		}
		return fmt.Sprintf("%s is told to own %s, which is free, and has %v", id, x, owned(a.after, id))
	}
	return ""
}

// drained: nobody comes to own an address of a pool that is being emptied. What is taken over after a restore was owned.
func (a *account) drained() string {
	quarantined := a.step == "renew" || !a.before.Group().Quarantine.IsZero() // at some moment of the step
	if a.scene.blind || quarantined {
		return ""
	}
	for _, now := range fsm.List[*fsm.Allocation](a.after, fsm.TableAllocations) {
		rec, ok := fsm.Get[*fsm.Pool](a.after, fsm.TablePools, string(now.Pool()))
		drains := slices.ContainsFunc(a.scene.world.Pools, func(pool *world.Pool) bool { return pool.Name == string(now.Pool()) && pool.Drain })
		if ok && drains && rec.Contains(now.Address) && !now.Releasing && !slices.Contains(owned(a.before, now.Service), now.Address) {
			return fmt.Sprintf("%s got %s of pool %s, which is being emptied", now.Service, now.Address, now.Pool())
		}
	}
	return ""
}

// about tells whether names and labels choose the namespace of all drawn Services; otherwise is said of labels that nobody
// knows.
func (a *account) about(names []string, selectors []world.Selector, otherwise bool) bool {
	if len(names) == 0 && len(selectors) == 0 || slices.Contains(names, "default") {
		return true
	}
	for _, n := range a.scene.world.Namespaces {
		return slices.ContainsFunc(selectors, func(s world.Selector) bool { return slices.Contains(n.Labels, s.Labels[0]) })
	}
	return len(selectors) > 0 && otherwise
}

// serves tells whether a pool is for a Service.
func (a *account) serves(pool *world.Pool, w *world.Service) bool {
	chosen := slices.ContainsFunc(pool.ServiceSelectors, func(s world.Selector) bool { return slices.Contains(w.Labels, s.Labels[0]) })
	return a.about(pool.Namespaces, pool.NamespaceSelectors, false) && (chosen || len(pool.ServiceSelectors) == 0)
}

// allows tells whether every policy lets Services name an address in spec.externalIPs, and one does.
func (a *account) allows(x netip.Addr) bool {
	listed := func(p *world.AddressPolicy) bool {
		return slices.ContainsFunc(p.ExternalIPs, func(r world.Range) bool { return r.Contains(x) })
	}
	forbidden := slices.ContainsFunc(a.scene.world.AddressPolicies, func(p *world.AddressPolicy) bool {
		return p.LimitsExternalIPs && !listed(p) && a.about(p.Namespaces, p.NamespaceSelectors, true)
	})
	allowed := slices.ContainsFunc(a.scene.world.AddressPolicies, func(p *world.AddressPolicy) bool {
		return listed(p) && a.about(p.Namespaces, p.NamespaceSelectors, false)
	})
	return !forbidden && (allowed || !a.scene.strict)
}

// closed tells whether an address is of a pool that is not for a Service, or nobody knows.
func (a *account) closed(x netip.Addr, w *world.Service) bool {
	for _, have := range fsm.List[*fsm.Pool](a.after, fsm.TablePools) {
		if !have.Contains(x) {
			continue
		}
		i := slices.IndexFunc(a.scene.world.Pools, func(p *world.Pool) bool { return p.Name == string(have.Name) })
		return i < 0 || !a.serves(a.scene.world.Pools[i], w)
	}
	return false
}

// quota is the least that a policy lets the namespace have.
func (a *account) quota() (least int, limited bool) {
	for _, p := range a.scene.world.AddressPolicies {
		if p.HasQuota && a.about(p.Namespaces, p.NamespaceSelectors, true) && (!limited || p.MaxAddresses < least) {
			least, limited = p.MaxAddresses, true
		}
	}
	return least, limited
}

// pooled are the addresses of pools that Services own.
func pooled(v *fsm.View) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for _, h := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
		if h.Pool() != "" && !h.Releasing {
			out[h.Address] = true
		}
	}
	return out
}

func (a *account) full() bool {
	least, limited := a.quota()
	return limited && len(pooled(a.after)) >= least
}

// limited: nobody comes to own more addresses of pools than policies let the namespace have, nor an address of
// spec.externalIPs that they do not allow, nor does what a pool gave count no more for being named there. What is taken over after a restore was owned.
func (a *account) limited() string {
	if a.scene.blind || a.step == "renew" || !a.before.Group().Quarantine.IsZero() {
		return ""
	}
	after := pooled(a.after)
	least, limited := a.quota()
	had := func(x netip.Addr) bool { // also by spec.externalIPs, which it names otherwise now
		return slices.ContainsFunc(a.before.Owners(x.String()), func(o *fsm.Allocation) bool { return !o.Releasing })
	}
	for x := range after {
		if limited && !had(x) && len(after) > least {
			return fmt.Sprintf("%s was given out, and that makes %d addresses where %d are allowed", x, len(after), least)
		}
	}
	for _, h := range fsm.List[*fsm.Allocation](a.after, fsm.TableAllocations) {
		if h.Pool() == "" && !h.Releasing && !slices.Contains(owned(a.before, h.Service), h.Address) {
			if !a.allows(h.Address) {
				return fmt.Sprintf("%s came to own %s, which a policy does not allow", h.Service, h.Address)
			}
			if w := a.shown()[h.Service]; w != nil && a.closed(h.Address, w) {
				return fmt.Sprintf("%s came to own %s, of a pool that is not for it", h.Service, h.Address)
			}
		}
		was, ok := fsm.Get[*fsm.Allocation](a.before, fsm.TableAllocations, h.Address.String()+" "+string(h.Service))
		if h.Pool() == "" && !h.Releasing && ok && was.Pool() != "" && !a.allows(h.Address) {
			return fmt.Sprintf("%s has %s counted no more, of which a policy does not allow that it names it", h.Service, h.Address)
		}
	}
	return ""
}

// poolGives tells whether a pool may give a Service an address.
func (a *account) poolGives(w *world.Service, x netip.Addr) bool {
	return slices.ContainsFunc(a.scene.world.Pools, func(pool *world.Pool) bool {
		rec, ok := fsm.Get[*fsm.Pool](a.after, fsm.TablePools, pool.Name)
		usable := (pool.AutoAssign && w.Extras().Pool == "" || w.Extras().Pool == pool.Name) && !pool.Drain
		return ok && usable && a.serves(pool, w) && rec.Contains(x)
	})
}

// freeFor finds an address that the record's pools could give a Service.
func (a *account) freeFor(w *world.Service, f world.Family) netip.Addr {
	for _, pool := range a.scene.world.Pools {
		rec, ok := fsm.Get[*fsm.Pool](a.after, fsm.TablePools, pool.Name)
		usable := (pool.AutoAssign && w.Extras().Pool == "" || w.Extras().Pool == pool.Name) && !pool.Drain
		if !ok || !usable || !a.serves(pool, w) {
			continue
		}
		for _, r := range rec.Ranges {
			for x := r.From; r.Contains(x); x = x.Next() {
				if world.FamilyOf(x) == f && len(a.after.Owners(x.String())) == 0 {
					return x
				}
			}
		}
	}
	return netip.Addr{}
}

// sharedFor are the addresses of pools that others have in a view and that a Service may share at once: it may have them of a pool, all that have
// them agreed to the same key, no port is meant twice, none is Local, and no node may pass a port on to somebody else.
func (a *account) sharedFor(v *fsm.View, w *world.Service, f world.Family) (out []netip.Addr) {
	if w.Extras().SharingKey == "" || w.ExternalTrafficPolicy == world.PolicyLocal {
		return nil
	}
	unlike := map[netip.Addr]bool{}
	for _, h := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
		s, _ := fsm.Get[*fsm.Service](v, fsm.TableServices, string(h.Service))
		meant := slices.ContainsFunc(w.Ports, func(p world.ServicePort) bool {
			port := fsm.Port{Protocol: protocolOf(p.Protocol), Number: p.Port}
			return slices.Contains(h.Ports(), port) || slices.Contains(s.Ports(), port)
		})
		own := string(h.Service) == w.ID.String()
		unlike[h.Address] = unlike[h.Address] || own || h.Releasing || h.SharingKey() != w.Extras().SharingKey || s.Local || s.Deleting || meant
		r, routed := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(h.Address).String())
		if routed && len(r.Closing) > 0 {
			unlike[h.Address] = true
		}
	}
	for x, no := range unlike {
		counted := a.full() && !pooled(v)[x] // by its owners it is no address of a pool: it would be one more
		if !no && !counted && world.FamilyOf(x) == f && a.poolGives(w, x) {
			out = append(out, x)
		}
	}
	return out
}

// together: nobody gets an address of a pool alone while there is one all the time that it may share.
func (a *account) together() string {
	if a.scene.blind || !a.before.Group().Quarantine.IsZero() || !a.after.Group().Quarantine.IsZero() {
		return ""
	}
	for id, w := range a.shown() {
		if len(w.ExternalIPs)+len(w.Extras().Requested) > 0 || partly(w) {
			continue
		}
		for _, x := range owned(a.after, id) {
			had := slices.ContainsFunc(a.before.Addresses(id), func(h *fsm.Allocation) bool { return h.Address == x })
			if had || slices.Contains(toldUsers(w), x) || len(a.after.Owners(x.String())) > 1 {
				continue
			}
			shared := a.sharedFor(a.after, w, world.FamilyOf(x))
			for _, v := range append(a.seen, a.reported) {
				there := a.sharedFor(v, w, world.FamilyOf(x))
				shared = slices.DeleteFunc(shared, func(y netip.Addr) bool { return !slices.Contains(there, y) })
			}
			if len(shared) > 0 {
				return fmt.Sprintf("%s got %s alone, and may share %v", id, x, shared)
			}
		}
	}
	return ""
}

// sticky: a Service that is alone on an address and still asks for it keeps it, each family on its own, whatever becomes of
// pools, policies and labels.
func (a *account) sticky() string {
	for id, w := range a.shown() {
		old, ok := fsm.Get[*fsm.Service](a.before, fsm.TableServices, string(id))
		if a.scene.blind || !ok || old.Deleting {
			continue
		}
		typed := slices.Concat(w.ExternalIPs, w.Extras().Requested)
		for _, address := range owned(a.before, id) {
			of, _ := fsm.Get[*fsm.Allocation](a.before, fsm.TableAllocations, address.String()+" "+string(id))
			alike := 0 // owned beside it, for the same wish
			for _, o := range owned(a.before, id) {
				if w.Families == 0 || o.Is4() == address.Is4() {
					alike++
				}
			}
			wished := w.Families == 0 || slices.Contains(w.Families.List(), world.FamilyOf(address))
			_, there := fsm.Get[*fsm.Pool](a.after, fsm.TablePools, w.Extras().Pool)
			ofPool := w.Extras().Pool == "" || w.Extras().Pool == string(of.Pool()) || !there
			pooled := of.Pool() != "" && len(typed) == 0 && !partly(w) && ofPool && wished && alike == 1
			asks := slices.Contains(typed, address) || pooled
			if asks && len(a.before.Owners(address.String())) == 1 && !slices.Contains(owned(a.after, id), address) {
				return fmt.Sprintf("%s asks for %s, had it alone, and lost it", id, address)
			}
		}
	}
	return ""
}

func (a *account) wantedHops(v *fsm.View, prefix netip.Prefix) (out []fsm.NextHop) {
	if r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, prefix.String()); ok {
		for _, h := range r.NextHops {
			if !h.Withdrawing {
				out = append(out, h)
			}
		}
	}
	return out
}

// replaced: an address that was given up led to a healthy node, in a view, and still may; of the addresses that its Service
// has instead none does, and an agent that runs has yet to say that it has, or has not, carried one out.
func (a *account) replaced(old netip.Addr, led *fsm.View, nodes map[fsm.NodeID]*fsm.Node) bool {
	leads := func(v *fsm.View, address netip.Addr, how func(netip.Prefix, fsm.NextHop, *fsm.Node) bool) bool {
		prefix := fsm.HostPrefix(address)
		return slices.ContainsFunc(a.wantedHops(v, prefix), func(h fsm.NextHop) bool {
			n := nodes[h.Node()]
			return n != nil && n.Eligible && how(prefix, h, n)
		})
	}
	announced := func(prefix netip.Prefix, h fsm.NextHop, n *fsm.Node) bool {
		return n.Liveness != fsm.NodeDown && fsm.Announceable(prefix, h, n, a.after.Group().Settings)
	}
	coming := func(prefix netip.Prefix, h fsm.NextHop, n *fsm.Node) bool {
		return n.Liveness == fsm.NodeUp && n.Boot != "" && n.Acknowledged.Before(h.Since) && !slices.Contains(n.Failed, prefix)
	}
	for _, o := range a.after.Owners(old.String()) {
		comes, came := false, false
		for _, own := range owned(a.after, o.Service) {
			if own.Is4() == old.Is4() {
				comes, came = comes || leads(a.after, own, coming), came || leads(a.after, own, announced)
			}
		}
		if comes && !came && leads(led, old, announced) {
			return true
		}
	}
	return false
}

// madeFirst: an address goes on leading somewhere while the one in its place is on its way, if its Service had that one all
// the time or could have it at once.
func (a *account) madeFirst() string {
	nodes := a.nodesAfter()
	for _, r := range fsm.List[*fsm.Route](a.reported, fsm.TableRoutes) {
		old := r.Prefix.Addr()
		if !releasing(a.after, old) || a.wantedHops(a.after, r.Prefix) != nil || !a.replaced(old, a.reported, nodes) {
			continue
		}
		atOnce := !slices.ContainsFunc(a.after.Owners(old.String()), func(o *fsm.Allocation) bool {
			return slices.ContainsFunc(owned(a.after, o.Service), func(own netip.Addr) bool {
				lost := slices.ContainsFunc(a.seen, func(v *fsm.View) bool { return !slices.Contains(owned(v, o.Service), own) })
				return lost && len(a.reported.Owners(own.String())) > 0
			})
		})
		if atOnce {
			return fmt.Sprintf("%s leads nowhere before the address in its place may be announced", r.Prefix)
		}
	}
	return ""
}

func (a *account) nodesAfter() map[fsm.NodeID]*fsm.Node {
	nodes := map[fsm.NodeID]*fsm.Node{}
	for _, n := range fsm.List[*fsm.Node](a.after, fsm.TableNodes) {
		nodes[n.ID] = n
	}
	return nodes
}

// nextHops: an address leads to the nodes that serve it, in terms of the record's own Services and nodes.
func (a *account) nextHops() string {
	nodes := a.nodesAfter()
	settings := a.after.Group().Settings
	for _, al := range fsm.List[*fsm.Allocation](a.after, fsm.TableAllocations) {
		prefix := fsm.HostPrefix(al.Address)
		serving := map[fsm.NodeID]bool{}
		ownerless := true
		for _, o := range a.after.Owners(al.Address.String()) {
			if s, ok := fsm.Get[*fsm.Service](a.after, fsm.TableServices, string(o.Service)); ok && !o.Releasing {
				ownerless = false
				if a.isDrained("service", string(s.ID)) {
					continue
				}
				servingNodes(s, al.Address, nodes, serving)
			}
		}
		hops := a.wantedHops(a.after, prefix)
		to := a.movedTo(al.Address, serving)
		if h, has := takes(hops, nodes[to], prefix, settings); has && !a.isAside(nodes[to]) {
			if len(hops) != 1 {
				return fmt.Sprintf("%s was moved to %s, which may be announced, and leads to %v", prefix, h.Node(), hops)
			}
			continue
		}
		if ownerless && a.replaced(al.Address, a.after, nodes) {
			continue
		}
		if ownerless && len(hops) > 0 {
			return fmt.Sprintf("%s leads somewhere and nobody owns it", prefix)
		}
		var live, stay, ready, near int
		for _, h := range hops {
			n := nodes[h.Node()]
			switch {
			case n == nil || !n.Eligible:
				return fmt.Sprintf("%s leads to %s, which is not eligible", prefix, h.Node())
			case !slices.Contains(n.Addresses, h.Address()):
				return fmt.Sprintf("%s leads to %s, which is no address of %s", prefix, h.Address(), h.Node())
			case serving[h.Node()]:
				stay++
				if fsm.Announceable(prefix, h, n, settings) {
					ready++
					if n.Liveness != fsm.NodeDown && !a.isAside(n) {
						near++
					}
					if n.Liveness != fsm.NodeDown {
						live++
					}
				}
			}
		}
		for _, h := range hops {
			had := slices.ContainsFunc(a.wantedHops(a.reported, prefix), func(o fsm.NextHop) bool { return o.Node() == h.Node() && o.Address() == h.Address() })
			switch n := nodes[h.Node()]; {
			case n.Liveness == fsm.NodeDown && live > 0:
				return fmt.Sprintf("%s leads to %s, which is down, beside one that is not and may be announced", prefix, h.Node())
			case a.isAside(n) && near > 0:
				return fmt.Sprintf("%s leads to %s, past which new flows shall go, beside one that may be announced", prefix, h.Node())
			case n.Liveness != fsm.NodeUp && !had:
				return fmt.Sprintf("%s came to lead to %s, which is %s", prefix, h.Node(), n.Liveness)
			case !serving[h.Node()] && (ready > 0 || stay == 0):
				return fmt.Sprintf("%s leads to %s, which does not serve it (%d do, %d of them ready)", prefix, h.Node(), stay, ready)
			}
		}
		for id := range serving {
			n := nodes[id]
			if n == nil || !n.Eligible || n.Liveness != fsm.NodeUp || a.isAside(n) && near > 0 {
				continue
			}
			if _, has := n.Address(al.Address); has && !slices.ContainsFunc(hops, func(h fsm.NextHop) bool { return h.Node() == id }) {
				return fmt.Sprintf("%s does not lead to %s, which serves it", prefix, id)
			}
		}
	}
	return ""
}

// nodes: the record says of nodes what the sources show, as kube-loadbalancer-controller.md words it.
func (a *account) nodes() string {
	if a.scene.blind {
		return ""
	}
	for _, w := range a.scene.world.Nodes {
		n, ok := fsm.Get[*fsm.Node](a.after, fsm.TableNodes, w.Name)
		if !ok || n.Eligible != (w.Ready && !w.Excluded) {
			return fmt.Sprintf("node %s is recorded as %+v", w.Name, n)
		}
		cordoned, tainted := a.scene.options.AsideCordoned && w.Unschedulable, a.scene.options.AsideTaints != nil && w.Taints != nil
		if n.Eligible && a.isAside(n) != (cordoned || tainted || a.isDrained("node", w.Name)) {
			return fmt.Sprintf("node %s, cordoned %t and tainted %t, is recorded as %+v", w.Name, cordoned, tainted, n)
		}
	}
	return ""
}

// lastHops: a verdict on nodes alone never takes the last next hop away.
func (a *account) lastHops() string {
	if !strings.HasPrefix(a.step, "down ") && !strings.HasPrefix(a.step, "agent-down ") {
		return ""
	}
	for _, r := range fsm.List[*fsm.Route](a.reported, fsm.TableRoutes) {
		if releasing(a.reported, r.Prefix.Addr()) {
			continue // given up on evidence, before nothing could be seen; it waited for the address that replaces it
		}
		if slices.ContainsFunc(r.NextHops, isWanted) && a.wantedHops(a.after, r.Prefix) == nil {
			return fmt.Sprintf("%s lost its last next hop for liveness alone", r.Prefix)
		}
	}
	return ""
}

// leads tells whether an address has a next hop that may be announced and is not down.
func (a *account) leads(v *fsm.View, prefix netip.Prefix) bool {
	return slices.ContainsFunc(a.wantedHops(v, prefix), func(h fsm.NextHop) bool {
		n, _ := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(h.Node()))
		return fsm.Announceable(prefix, h, n, v.Group().Settings) && n.Liveness != fsm.NodeDown
	})
}

// lastDrained: to drain a node never takes the last next hop that may be announced away.
func (a *account) lastDrained() string {
	if !strings.HasPrefix(a.step, "drain n") {
		return ""
	}
	for _, r := range fsm.List[*fsm.Route](a.before, fsm.TableRoutes) {
		if a.leads(a.before, r.Prefix) && !a.leads(a.after, r.Prefix) {
			return fmt.Sprintf("%s lost the last next hop that could be announced to a drain", r.Prefix)
		}
	}
	return ""
}

// lastMoved: to move a Service never leaves an address without a next hop that may be announced, not for one entry. Once another move
// ends by that, the address leads where it would without: that may be nowhere, if no node that serves it is eligible (nextHops).
func (a *account) lastMoved() string {
	if !strings.HasPrefix(a.step, "move ") {
		return ""
	}
	for _, r := range fsm.List[*fsm.Route](a.before, fsm.TableRoutes) {
		ends := !a.leads(a.after, r.Prefix) && a.endsMove(r.Prefix.Addr())
		for _, v := range append(a.seen, a.after) {
			if a.leads(a.before, r.Prefix) && !a.leads(v, r.Prefix) && !ends {
				return fmt.Sprintf("%s lost the last next hop that could be announced to a move", r.Prefix)
			}
		}
	}
	return ""
}

// endsMove tells whether a move of a Service that owns an address may have ended by the step, for another one or for none.
func (a *account) endsMove(address netip.Addr) bool {
	return strings.HasPrefix(a.step, "move ") && slices.ContainsFunc(a.before.Owners(address.String()), func(o *fsm.Allocation) bool {
		_, moved := fsm.Get[*fsm.Move](a.before, fsm.TableMoves, string(o.Service))
		return moved
	})
}

// movedTo is where all who own an address were moved, if it is served there: who serves it has the node pass it on, unless a Service
// is Local.
func (a *account) movedTo(address netip.Addr, serving map[fsm.NodeID]bool) fsm.NodeID {
	to, passes := map[fsm.NodeID]bool{}, len(serving) > 0
	for _, o := range a.after.Owners(address.String()) {
		s, ok := fsm.Get[*fsm.Service](a.after, fsm.TableServices, string(o.Service))
		if !ok || o.Releasing {
			continue
		}
		node := fsm.NodeID("")
		for _, m := range fsm.List[*fsm.Move](a.after, fsm.TableMoves) {
			if m.Service == s.ID && (s.Local || !s.AllNodes) {
				node = m.Node
			}
		}
		to[node] = true
		passes = passes && (!s.Local || a.isDrained("service", string(s.ID)))
	}
	for node := range to {
		if len(to) == 1 && node != "" && (passes || serving[node]) {
			serving[node] = true
			return node
		}
	}
	return ""
}

// takes finds a node among the next hops that may be announced, unless the node is down.
func takes(hops []fsm.NextHop, n *fsm.Node, prefix netip.Prefix, settings fsm.Settings) (fsm.NextHop, bool) {
	for _, h := range hops {
		if n != nil && h.Node() == n.ID && n.Liveness != fsm.NodeDown && fsm.Announceable(prefix, h, n, settings) {
			return h, true
		}
	}
	return fsm.NextHop{}, false
}

func (a *account) isDrained(of, name string) bool {
	return slices.ContainsFunc(fsm.List[*fsm.Drain](a.after, fsm.TableDrains), func(d *fsm.Drain) bool {
		return string(d.Of) == of && d.Name == name
	})
}

// isAside: an operator drains the node, or it was cordoned or tainted when it was seen last and that is heeded.
func (a *account) isAside(n *fsm.Node) bool {
	return a.isDrained("node", string(n.ID)) || strings.Contains(n.Why, "cordoned") || strings.Contains(n.Why, "tainted")
}

// led counts the Services that own an address and are not being drained.
func (a *account) led(address netip.Addr) (n int) {
	for _, o := range a.after.Owners(address.String()) {
		if !o.Releasing && !a.isDrained("service", string(o.Service)) {
			n++
		}
	}
	return n
}

// servingNodes adds the nodes on which a Service is served, as docs/spec/kubernetes-lb.md words it.
func servingNodes(s *fsm.Service, address netip.Addr, nodes map[fsm.NodeID]*fsm.Node, out map[fsm.NodeID]bool) {
	var same []fsm.Endpoint
	for _, e := range s.Endpoints {
		if e.Address.Is4() == address.Is4() {
			same = append(same, e)
		}
	}
	var ready, ending, readyAtWork, endingAtWork []fsm.NodeID // at work: not of weight 0
	for _, e := range same {
		if e.Ready {
			ready = append(ready, e.Node)
		}
		if e.Serving && e.Terminating {
			ending = append(ending, e.Node)
		}
		if e.Ready && !e.Quiesced {
			readyAtWork = append(readyAtWork, e.Node)
		}
		if e.Serving && e.Terminating && !e.Quiesced {
			endingAtWork = append(endingAtWork, e.Node)
		}
	}
	switch { // K40: nodes that could do nothing for new connections are next hops only where all are such
	case s.Local && len(readyAtWork) > 0:
		ready = readyAtWork
	case s.Local && len(endingAtWork) > 0:
		ready = endingAtWork
	case len(ready) == 0:
		ready = ending
	}
	for _, id := range ready {
		out[id] = true
	}
	if len(ready) > 0 && s.AllNodes && !s.Local {
		for id := range nodes {
			out[id] = true
		}
	}
}

// removals: what is surely gone is on its way out, and is out once no path can be left.
func (a *account) removals() string {
	if a.scene.blind || !a.after.Group().Quarantine.IsZero() {
		return ""
	}
	for _, s := range fsm.List[*fsm.Service](a.after, fsm.TableServices) {
		if a.shown()[s.ID] != nil || a.scene.kept["service "+idOf(s.ID).Name] {
			continue
		}
		if !s.Deleting || len(owned(a.after, s.ID)) > 0 {
			return fmt.Sprintf("%s is gone and still owns %v", s.ID, owned(a.after, s.ID))
		}
		routed := slices.ContainsFunc(a.after.Addresses(s.ID), func(h *fsm.Allocation) bool {
			_, ok := fsm.Get[*fsm.Route](a.after, fsm.TableRoutes, fsm.HostPrefix(h.Address).String())
			return ok
		})
		if !routed {
			return fmt.Sprintf("%s is gone, no path is left, and its record is still there", s.ID)
		}
	}
	return ""
}

// The same input makes the same plan: the order of maps must not show, nor which of two sources shows an object.
func TestPropertyPlanIsDeterministic(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newScene(t)
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		for i := range steps {
			drawStep(t, s)
			if i < steps-1 {
				s.group.settle(s.input())
			}
		}
		s.blind = false
		in := s.input()
		in.Record = s.group.state.Read()
		first := Plan(in)
		for range 3 {
			if again := Plan(in); !reflect.DeepEqual(first, again) {
				t.Fatalf("planned %v, then %v", first, again)
			}
		}
		seed := rapid.Uint64().Draw(t, "split")
		apart := in
		apart.Views = splitViews(in.Views[0], rand.New(rand.NewPCG(seed, 0)))
		other := Plan(apart)
		if want, have := commands(first), commands(other); !slices.Equal(want, have) {
			t.Fatalf("planned from one source:\n%s\nfrom two:\n%s", strings.Join(want, "\n"), strings.Join(have, "\n"))
		}
	})
}

// commands spells a plan, but for up to where the sources were acted on.
func commands(r Result) []string {
	var out []string
	for _, p := range all(r) {
		if _, ok := p.Command.(*fsm.ObserveView); !ok {
			out = append(out, spell(p.Command))
		}
	}
	return out
}

// splitViews deals the objects of a view to two sources.
func splitViews(a Admitted, random *rand.Rand) []Admitted {
	x, y := a.World.Clone(), a.World.Clone()
	x.Source, y.Source = "x", "y"
	x.Services, y.Services = deal(a.World.Services, random)
	x.EndpointSlices, y.EndpointSlices = deal(a.World.EndpointSlices, random)
	x.Nodes, y.Nodes = deal(a.World.Nodes, random)
	x.Pools, y.Pools = deal(a.World.Pools, random)
	return []Admitted{{World: &x, Complete: true, MayRemove: a.MayRemove}, {World: &y, Complete: true, MayRemove: a.MayRemove}}
}

func deal[T any](list []T, random *rand.Rand) (x, y []T) {
	for _, v := range list {
		if random.IntN(2) == 0 {
			x = append(x, v)
		} else {
			y = append(y, v)
		}
	}
	return x, y
}
