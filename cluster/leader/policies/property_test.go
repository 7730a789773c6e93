// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// failer is what testing.T and rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// group is a record without a group around it: what is proposed is applied at once.
type group struct{ *fsm.State }

func newGroup(t failer, format uint32) *group {
	return &group{fsmtest.NewOf(t, "test", format)}
}

func (g *group) must(t failer, cs ...fsm.Command) {
	t.Helper()
	fsmtest.Tell(t, g.State, cs...)
}

// settle applies what is planned, and plans once more: then nothing may be left to do.
func (g *group) settle(t failer, in Input) Result {
	t.Helper()
	in.Record, in.Now = g.Read(), time.UnixMilli(1)
	out := Plan(in)
	for _, p := range out.Proposals {
		g.must(t, p.Command)
	}
	in.Record = g.Read()
	if again := Plan(in); len(again.Proposals) > 0 {
		t.Fatalf("a second plan proposes %+v", again.Proposals[0].Command)
	}
	return out
}

func (g *group) rows() map[fsm.PolicyID]*fsm.Policy {
	out := map[fsm.PolicyID]*fsm.Policy{}
	for _, r := range fsm.List[*fsm.Policy](g.Read(), fsm.TablePolicies) {
		out[r.ID] = r
	}
	return out
}

// The model keeps objects in words of its own: at most one label each, and selectors of at most one.
type (
	mPolicy struct {
		kind, name, uid    string
		created            int64
		disabled, outside  bool
		nodes              string // label of nodes; empty for all
		service, address   string
		ports              []string // "80/TCP>8080"
		mode               world.RedirectMode
		pods               string
		addresses          []string
		fallThrough, spare bool
	}
	mService struct {
		ips   []string
		ports []string // "80/TCP"
	}
	mNode struct {
		label, internal, external string
	}
	mPod struct {
		label, ip, node, uid string
		ready, running       bool
		going                bool
	}
	mWorld struct {
		policies map[string]mPolicy // by "kind/name"
		services map[string]mService
		nodes    map[string]mNode
		pods     map[string]mPod
	}
)

func drawWorld(t *rapid.T) mWorld {
	w := mWorld{map[string]mPolicy{}, map[string]mService{}, map[string]mNode{}, map[string]mPod{}}
	flip := func(name string) bool { return rapid.Bool().Draw(t, name) }
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	for i, name := range []string{"s1", "s2"} {
		if !flip("service " + name) {
			continue
		}
		s := mService{ports: []string{"80/TCP"}}
		if flip("second port") {
			s.ports = append(s.ports, "53/UDP")
		}
		for _, ip := range rapid.SampledFrom([][]string{{}, {"10.96.0.%d"}, {"10.96.0.%d", "2001:db8:96::%d"}}).Draw(t, "families") {
			s.ips = append(s.ips, fmt.Sprintf(ip, i+1))
		}
		w.services[name] = s
	}
	for i := range 3 {
		n := mNode{label: pick("label", "x", "y"), internal: fmt.Sprintf("192.0.2.%d", i+1)}
		if i == 2 {
			n.internal, n.external = "", "198.51.100.3"
		}
		w.nodes[fmt.Sprint("n", i)] = n
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "pods") {
		w.pods[fmt.Sprint("p", i)] = drawPod(t, i)
	}
	for _, id := range []string{"BalancingPolicy/a", "BalancingPolicy/b", "LocalRedirectPolicy/a", "LocalRedirectPolicy/c"} {
		if flip("policy " + id) {
			w.policies[id] = drawPolicy(t, id)
		}
	}
	return w
}

func drawPod(t *rapid.T, i int) mPod {
	return mPod{
		label: rapid.SampledFrom([]string{"web", "dns"}).Draw(t, "label"), ip: rapid.SampledFrom([]string{"10.0.0.%d", "10.0.0.%d", "2001:db8::%d", ""}).Draw(t, "address"),
		node: fmt.Sprint("n", rapid.IntRange(0, 2).Draw(t, "node")), uid: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid"),
		ready: rapid.Bool().Draw(t, "ready"), running: rapid.IntRange(0, 4).Draw(t, "running") > 0, going: rapid.IntRange(0, 5).Draw(t, "going") == 0,
	}.at(i)
}

func (p mPod) at(i int) mPod {
	if p.ip != "" {
		p.ip = fmt.Sprintf(p.ip, i+1)
	}
	return p
}

func drawPolicy(t *rapid.T, id string) mPolicy {
	kind, name, _ := strings.Cut(id, "/")
	p := mPolicy{
		kind: kind, name: name, uid: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid"), created: rapid.Int64Range(1, 2).Draw(t, "created"),
		disabled: rapid.IntRange(0, 4).Draw(t, "disabled") == 0, outside: rapid.Bool().Draw(t, "outside"), nodes: rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "nodes"),
		ports: rapid.SampledFrom([][]string{{"80/TCP>8080"}, {"80/TCP>8080", "53/UDP>5353"}, {"443/TCP>8443"}}).Draw(t, "ports"),
		pods:  rapid.SampledFrom([]string{"web", "dns"}).Draw(t, "selector"), mode: world.ToLocalPods,
		fallThrough: rapid.Bool().Draw(t, "fall through"), spare: rapid.Bool().Draw(t, "spare"),
	}
	if p.address = rapid.SampledFrom([]string{"", "10.96.0.1", "169.254.77.1", "2001:db8:96::1"}).Draw(t, "virtual"); p.address == "" {
		p.service = rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "of service")
	}
	if kind == "BalancingPolicy" {
		p.mode = rapid.SampledFrom([]world.RedirectMode{world.ToPods, world.ToHostPorts, world.ToAddresses, world.ToProxies}).Draw(t, "mode")
	}
	if p.mode == world.ToAddresses {
		p.addresses = rapid.SliceOfN(rapid.SampledFrom([]string{"203.0.113.1", "203.0.113.2", "2001:db8:9::1"}), 1, 3).Draw(t, "addresses")
		slices.SortFunc(p.addresses, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
	}
	return p
}

// input shows a world as a source does, and lets be removed what may be.
func (w mWorld) input(mayRemove func(kind world.Kind, name string) bool) Input {
	in := Input{MayRemove: func(k world.Kind, id world.ID) bool { return mayRemove(k, id.Name) }}
	label := func(key, value string) []world.KV { return []world.KV{{Key: key, Value: value}} }
	meta := func(ns, name, uid string, created int64) world.Meta {
		return world.Meta{ID: world.ID{Namespace: ns, Name: name}, UID: uid, Version: 1, Created: uint32(created)}
	}
	for _, name := range slices.Sorted(maps.Keys(w.services)) {
		s := world.Service{Meta: meta("shop", name, name, 0), Headless: len(w.services[name].ips) == 0}
		for _, ip := range w.services[name].ips {
			s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr(ip))
		}
		for _, p := range w.services[name].ports {
			port, protocol := splitPort(p)
			s.Ports = append(s.Ports, world.ServicePort{Port: port, Protocol: protocol})
		}
		in.Services = append(in.Services, &s)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := world.Node{Meta: meta("", name, name, 0), Labels: label("l", w.nodes[name].label)}
		for kind, a := range map[world.AddressType]string{world.InternalIP: w.nodes[name].internal, world.ExternalIP: w.nodes[name].external} {
			if a != "" {
				n.Addresses = append(n.Addresses, world.NodeAddress{Type: kind, Address: netip.MustParseAddr(a)})
			}
		}
		in.Nodes = append(in.Nodes, &n)
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[name]
		o := world.Pod{Meta: meta("shop", name, p.uid, 0), IP: p.ip, Node: p.node, Ready: p.ready, Running: p.running, Labels: label("app", p.label)}
		o.Deleting = p.going
		in.Pods = append(in.Pods, &o)
	}
	for _, id := range slices.Sorted(maps.Keys(w.policies)) {
		p := w.policies[id]
		r := world.Redirect{Disabled: p.disabled, Outside: p.outside, Mode: p.mode, Pods: world.Selector{Labels: label("app", p.pods)}, FallThrough: p.fallThrough, SpareOwn: p.spare}
		if p.nodes != "" {
			r.Nodes.Labels = label("l", p.nodes)
		}
		if p.service != "" {
			r.Service = world.ID{Namespace: "shop", Name: p.service}
		} else {
			r.Address = netip.MustParseAddr(p.address)
		}
		for _, text := range p.ports {
			from, to, _ := strings.Cut(text, ">")
			port, protocol := splitPort(from)
			target, _ := splitPort(to + "/TCP")
			r.Ports = append(r.Ports, world.RedirectPort{Port: port, Protocol: protocol, Target: target})
		}
		for _, a := range p.addresses {
			r.Addresses = append(r.Addresses, netip.MustParseAddr(a))
		}
		if p.kind == "BalancingPolicy" {
			in.Balancing = append(in.Balancing, &world.BalancingPolicy{Meta: meta("", p.name, p.uid, p.created), Redirect: r})
		} else {
			in.Local = append(in.Local, &world.LocalRedirectPolicy{Meta: meta("", p.name, p.uid, p.created), Redirect: r})
		}
	}
	return in
}

func splitPort(text string) (uint16, world.Protocol) {
	var n uint16
	var protocol string
	if _, err := fmt.Sscanf(strings.Replace(text, "/", " ", 1), "%d %s", &n, &protocol); err != nil {
		panic(err)
	}
	return n, world.Protocol(protocol)
}

// captures are "10.96.0.1 80/TCP>8080" of a policy, in order.
func (w mWorld) captures(p mPolicy) (out []string) {
	if p.mode == world.ToProxies {
		return nil
	}
	at := []string{p.address}
	if p.service != "" {
		at = w.services[p.service].ips
	}
	for _, ip := range at {
		for _, port := range p.ports {
			from, _, _ := strings.Cut(port, ">")
			if p.service == "" || slices.Contains(w.services[p.service].ports, from) {
				out = append(out, ip+" "+port)
			}
		}
	}
	slices.Sort(out)
	return out
}

// backends are "10.0.0.1 p1/u1 on n0 ready" of a policy, in order.
func (w mWorld) backends(p mPolicy) (out []string) {
	switch p.mode {
	case world.ToProxies:
		return nil
	case world.ToAddresses:
		for _, a := range p.addresses {
			out = append(out, a+"  ready=true")
		}
	default:
		for name, pod := range w.pods {
			if pod.label != p.pods || pod.going || !pod.running || pod.ip == "" {
				continue
			}
			address := pod.ip
			if p.mode == world.ToHostPorts {
				if address = w.nodes[pod.node].internal; address == "" {
					address = w.nodes[pod.node].external
				}
			}
			if address != "" {
				out = append(out, fmt.Sprintf("%s shop/%s/%s on %s ready=%t", address, name, pod.uid, pod.node, pod.ready))
			}
		}
	}
	slices.Sort(out)
	return out
}

// hosts are the nodes on which it is effective, and "outside".
func (w mWorld) hosts(p mPolicy) (out []string) {
	if p.disabled {
		return nil
	}
	for name, n := range w.nodes {
		if p.nodes == "" || p.nodes == n.label {
			out = append(out, name)
		}
	}
	if p.outside {
		out = append(out, "outside")
	}
	slices.Sort(out)
	return out
}

// beaten tells whether on some host another policy of the kind captures the same place and was made before, or at once with it and is
// the first by name.
func (w mWorld) beaten(p mPolicy) bool {
	for _, o := range w.policies {
		if o.kind != p.kind || o.name == p.name || o.created > p.created || o.created == p.created && o.name > p.name {
			continue
		}
		place := func(c string) string { at, _, _ := strings.Cut(c, ">"); return at }
		for _, mine := range w.captures(p) {
			for _, theirs := range w.captures(o) {
				if place(mine) == place(theirs) && slices.ContainsFunc(w.hosts(p), func(h string) bool { return slices.Contains(w.hosts(o), h) }) {
					return true
				}
			}
		}
	}
	return false
}

// What a row says, in the model's words.
func told(r *fsm.Policy, nodes []string) (captures, backends, hosts []string) {
	for _, c := range r.Captures {
		captures = append(captures, fmt.Sprintf("%s %d/%s>%d", c.Address, c.Port.Number, strings.ToUpper(c.Port.Protocol.String()), c.Target))
	}
	for _, b := range r.Backends {
		pod := ""
		if b.Pod != "" {
			pod = fmt.Sprintf("%s/%s on %s", b.Pod, b.UID, b.Node)
		}
		backends = append(backends, fmt.Sprintf("%s %s ready=%t", b.Address, pod, b.Ready))
	}
	for _, n := range nodes {
		if r.EveryNode || slices.Contains(r.Nodes, fsm.NodeID(n)) {
			hosts = append(hosts, n)
		}
	}
	if r.Outside {
		hosts = append(hosts, "outside")
	}
	slices.Sort(captures)
	slices.Sort(backends)
	slices.Sort(hosts)
	return captures, backends, hosts
}

// agrees compares the record with the model, but for policies that are only lost.
func (w mWorld) agrees(t failer, g *group, lost map[string]bool) {
	t.Helper()
	rows, numbers := g.rows(), map[uint32]bool{0: true}
	if len(rows) != len(w.policies) {
		t.Fatalf("%d policies of %d policies", len(rows), len(w.policies))
	}
	for id, p := range w.policies {
		r := rows[fsm.PolicyID(id)]
		if r == nil || r.UID != p.uid || r.Mode != string(p.mode) || r.FallThrough != p.fallThrough || r.SpareOwn != p.spare || numbers[r.Number] {
			t.Fatalf("policy %+v is %+v", p, r)
		}
		numbers[r.Number] = true
		if lost[id] {
			continue
		}
		captures, backends, hosts := told(r, slices.Collect(maps.Keys(w.nodes)))
		if want := w.captures(p); !slices.Equal(captures, want) {
			t.Fatalf("%s captures %q, not %q", id, captures, want)
		}
		if want := w.backends(p); !slices.Equal(backends, want) {
			t.Fatalf("%s leads to %q, not %q", id, backends, want)
		}
		if want := w.hosts(p); !slices.Equal(hosts, want) {
			t.Fatalf("%s is effective on %q, not %q", id, hosts, want)
		}
		if len(lost) == 0 && (r.Pending.Code == WaitsForWinner) != w.beaten(p) {
			t.Fatalf("%s is beaten: %t, and waits for %+v", id, w.beaten(p), r.Pending)
		}
	}
}

func nothing(world.Kind, string) bool    { return false }
func everything(world.Kind, string) bool { return true }

// Balancing §2, §4, §5, §6, §8: the record says of each policy what it captures, what it leads to, where it is effective, and whether another one wins; also after
// everything became otherwise, and what went may be removed.
func TestPropertyTheRecordHasWhatPoliciesAskFor(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup(t, format)
		for range rapid.IntRange(1, 3).Draw(t, "worlds") {
			w := drawWorld(t)
			g.settle(t, w.input(everything))
			w.agrees(t, g, nil)
		}
		in := mWorld{}.input(nothing)
		in.Off = true
		if g.settle(t, in); len(g.rows()) > 0 {
			t.Fatalf("%d policies stay though nobody carries them out", len(g.rows()))
		}
	})
}

// S12: what is absent without evidence stays as it was, and what is absent with evidence goes, of policies, Services, nodes and pods.
func TestPropertyWhatIsOnlyAbsentStays(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g, w := newGroup(t, format), drawWorld(t)
		g.settle(t, w.input(nothing))
		before := g.rows()
		seen, still, lost := w.clone(), w.clone(), map[string]bool{}
		fate := func(kind world.Kind, name string) (shown, gone bool) {
			f := rapid.SampledFrom([]string{"shown", "shown", "lost", "gone"}).Draw(t, fmt.Sprint(kind, " ", name))
			lost[string(kind)+"/"+name] = f == "lost"
			return f == "shown", f == "gone"
		}
		away(w.services, seen.services, still.services, func(name string) (bool, bool) { return fate(world.KindService, name) })
		away(w.pods, seen.pods, still.pods, func(name string) (bool, bool) { return fate(world.KindPod, name) })
		away(w.policies, seen.policies, still.policies, func(id string) (bool, bool) {
			kind, name, _ := strings.Cut(id, "/")
			return fate(world.Kind(kind), name)
		})
		away(w.nodes, seen.nodes, still.nodes, func(name string) (bool, bool) { return fate(world.KindNode, name) })
		g.settle(t, seen.input(func(kind world.Kind, name string) bool { return !lost[string(kind)+"/"+name] }))
		for id := range maps.Keys(still.policies) {
			if lost[id] && fmt.Sprint(before[fsm.PolicyID(id)].Captures) != fmt.Sprint(g.rows()[fsm.PolicyID(id)].Captures) {
				t.Fatalf("%s, which is only lost, captured %v", id, before[fsm.PolicyID(id)].Captures)
			}
		}
		still.agrees(t, g, lost)
	})
}

func (w mWorld) clone() mWorld {
	return mWorld{maps.Clone(w.policies), maps.Clone(w.services), maps.Clone(w.nodes), maps.Clone(w.pods)}
}

// away takes objects out of what is seen, and those that are gone out of what is still there.
func away[T any](all, seen, still map[string]T, fate func(name string) (shown, gone bool)) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		shown, gone := fate(name)
		if !shown {
			delete(seen, name)
		}
		if gone {
			delete(still, name)
		}
	}
}
