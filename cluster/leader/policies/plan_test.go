// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// plain is a world of a Service, a node with a ready pod, and no policy.
func plain() mWorld {
	return mWorld{
		map[string]mPolicy{}, map[string]mService{"s1": {[]string{"10.96.0.1"}, []string{"80/TCP"}}},
		map[string]mNode{"n0": {label: "x", internal: "192.0.2.1"}, "n1": {label: "y", internal: "192.0.2.2"}},
		map[string]mPod{"p0": {label: "web", ip: "10.0.0.1", node: "n0", uid: "u1", ready: true, running: true}},
	}
}

func toPods(name string, created int64) mPolicy {
	return mPolicy{kind: "BalancingPolicy", name: name, uid: name, created: created, service: "s1", ports: []string{"80/TCP>8080"}, mode: world.ToPods, pods: "web"}
}

func toLocal(name string, created int64) mPolicy {
	p := toPods(name, created)
	p.kind, p.mode = "LocalRedirectPolicy", world.ToLocalPods
	return p
}

// with has further policies in a world.
func (w mWorld) with(policies ...mPolicy) mWorld {
	for _, p := range policies {
		w.policies[p.kind+"/"+p.name] = p
	}
	return w
}

// said are the explanations, as "name: code: text".
func said(out Result) (lines []string) {
	for _, e := range out.Waiting {
		lines = append(lines, e.Name+": "+e.Code+": "+e.Text)
	}
	return lines
}

// Balancing §4: each reason why a policy is not carried out as it asks is told, with what is to be mended.
func TestWhatAPolicyWaitsForIsTold(t *testing.T) {
	change := func(p mPolicy, edit func(*mPolicy)) mPolicy { edit(&p); return p }
	for name, c := range map[string]struct {
		world mWorld
		want  []string
	}{
		"nothing":    {plain().with(toPods("a", 1)), nil},
		"no Service": {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.service = "s2" })), []string{"BalancingPolicy/a: no-service: there is no Service shop/s2"}},
		"headless": {func() mWorld {
			w := plain().with(toPods("a", 1))
			w.services["s1"] = mService{nil, []string{"80/TCP"}}
			return w
		}(),
			[]string{"BalancingPolicy/a: no-cluster-ip: Service shop/s1 has no ClusterIP, which alone is captured"}},
		"no port": {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.ports = []string{"80/TCP>8080", "53/UDP>5353"} })),
			[]string{"BalancingPolicy/a: no-port: Service shop/s1 has no port 53/UDP that a port of the backend is for"}},
		"no pod": {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.pods = "dns" })),
			[]string{"BalancingPolicy/a: no-backend: no pod that it selects runs; connections are refused"}},
		"no pod, and falls through": {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.pods, p.fallThrough = "dns", true })),
			[]string{"BalancingPolicy/a: no-backend: no pod that it selects runs; connections go where they went without it"}},
		"no local pod": {plain().with(change(toLocal("a", 1), func(p *mPolicy) { p.pods = "dns" })),
			[]string{"LocalRedirectPolicy/a: no-backend: no pod that it selects is ready; connections go where they went without it"}},
		"another family": {plain().with(change(toPods("a", 1), func(p *mPolicy) {
			p.service, p.address, p.mode, p.addresses = "", "2001:db8::1", world.ToAddresses, []string{"203.0.113.1"}
		})),
			[]string{"BalancingPolicy/a: no-backend: none of its addresses is of a family that it captures"}},
		"node proxies": {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.mode = world.ToProxies })),
			[]string{"BalancingPolicy/a: not-carried-out: no node has a proxy address: there are no tunnels (tunnels in controller.yaml, tunnel in agent.yaml) and no annotations; connections go where they went without the policy"}},
		"disabled": {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.disabled, p.service = true, "s2" })), nil},
		"an older one": {plain().with(toPods("a", 2), toPods("b", 1)),
			[]string{"BalancingPolicy/a: conflict: BalancingPolicy b, which counts before it, captures 10.96.0.1:80/TCP already"}},
		"of the same second": {plain().with(toLocal("a", 1), toLocal("b", 1)),
			[]string{"LocalRedirectPolicy/b: conflict: LocalRedirectPolicy a, which counts before it, captures 10.96.0.1:80/TCP already"}},
		"one of each kind": {plain().with(toPods("a", 1), toLocal("b", 1)), nil},
		"on other hosts":   {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.nodes = "x" }), change(toPods("b", 1), func(p *mPolicy) { p.nodes = "y" })), nil},
		"outside alone": {plain().with(change(toPods("a", 1), func(p *mPolicy) { p.nodes, p.outside = "x", true }), change(toPods("b", 2), func(p *mPolicy) { p.nodes, p.outside = "y", true })),
			[]string{"BalancingPolicy/b: conflict: BalancingPolicy a, which counts before it, captures 10.96.0.1:80/TCP already"}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			g := newGroup(t, format)
			if got := said(g.settle(t, c.world.input(everything))); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Balancing §3: the loser takes over when the winner goes, under the number that it had all the time; one of the same name that comes later is
// another object, with another number.
func TestALoserTakesOverUnderItsNumber(t *testing.T) {
	g := newGroup(t, format)
	g.settle(t, plain().with(toPods("a", 1), toPods("b", 2)).input(everything))
	before := g.rows()
	g.settle(t, plain().with(toPods("b", 2)).input(everything))
	b := g.rows()["BalancingPolicy/b"]
	if b.Pending.Code != "" || b.Number != before["BalancingPolicy/b"].Number {
		t.Errorf("b is %+v, before %+v", b, before["BalancingPolicy/b"])
	}
	again := toPods("a", 3)
	again.uid = "a-2"
	g.settle(t, plain().with(again, toPods("b", 2)).input(everything))
	if a := g.rows()["BalancingPolicy/a"]; a.Number == before["BalancingPolicy/a"].Number || a.Number == b.Number || a.Pending.Code != WaitsForWinner {
		t.Errorf("a is %+v, before %+v", a, before["BalancingPolicy/a"])
	}
}

// Two that ask for one number do not get it both.
func TestANumberIsGivenOnce(t *testing.T) {
	in := plain().with(toPods("a", 1), toLocal("b", 2)).input(everything)
	in.Balancing[0].ServiceID, in.Local[0].ServiceID = 31007, 31007
	g := newGroup(t, format)
	g.settle(t, in)
	rows := g.rows()
	if a, b := rows["BalancingPolicy/a"].Number, rows["LocalRedirectPolicy/b"].Number; a != 31007 || b != 1 {
		t.Errorf("numbers %d and %d", a, b)
	}
}

// Balancing §4: a policy that names no port captures those of its Service that join.
func TestAllPortsOfAServiceAreCaptured(t *testing.T) {
	in := plain().with(toPods("a", 1)).input(everything)
	o := in.Balancing[0]
	o.Ports, o.AllPorts, o.Targets = nil, true, []world.TargetPort{{Name: "x", Protocol: world.TCP, Port: 8080}}
	g := newGroup(t, format)
	g.settle(t, in)
	if got := g.rows()["BalancingPolicy/a"].Captures; len(got) != 1 || got[0].Port.Number != 80 || got[0].Target != 8080 {
		t.Errorf("captures %+v", got)
	}
}

// A policy whose policy is only lost stays as it was. Of its backends those that are there to be seen are what they are now, and it
// wins or loses as those do that are there.
func TestALostPolicyFollowsWhatIsThere(t *testing.T) {
	w := plain().with(toPods("a", 1), toPods("b", 2))
	w.pods["p1"] = mPod{label: "web", ip: "10.0.0.2", node: "n1", uid: "u1", ready: true, running: true}
	w.pods["p2"] = mPod{label: "web", ip: "10.0.0.3", node: "n1", uid: "u1", ready: true, running: true}
	g := newGroup(t, format)
	g.settle(t, w.input(nothing))
	if b := g.rows()["BalancingPolicy/b"]; b.Pending.Code != WaitsForWinner || len(b.Backends) != 3 {
		t.Fatalf("to begin with %+v", b)
	}
	again, unready := w.pods["p1"], w.pods["p2"]
	again.uid, unready.ready = "u2", false
	w.pods["p1"], w.pods["p2"] = again, unready
	w.policies = map[string]mPolicy{}
	g.settle(t, w.input(func(kind world.Kind, name string) bool { return name == "a" }))
	b := g.rows()["BalancingPolicy/b"]
	if b.Pending.Code != "" || len(b.Backends) != 2 || b.Backends[0].Pod != "shop/p0" || b.Backends[1].Ready {
		t.Errorf("b is %+v", b)
	}
}

// Balancing §6: a host port stays at the address of a node that is only lost, and follows one that has another address, also where the pod is lost.
func TestHostPortsFollowTheirNodes(t *testing.T) {
	w := plain()
	p := toPods("a", 1)
	p.mode = world.ToHostPorts
	w.with(p)
	g := newGroup(t, format)
	g.settle(t, w.input(nothing))
	leads := func(when, want string) {
		t.Helper()
		if b := g.rows()["BalancingPolicy/a"].Backends; len(b) != 1 || b[0].Address.String() != want || b[0].Pod != "shop/p0" {
			t.Errorf("%s: leads to %+v, not %s", when, b, want)
		}
	}
	leads("at first", "192.0.2.1")
	node := w.nodes["n0"]
	delete(w.nodes, "n0")
	g.settle(t, w.input(nothing))
	leads("the node is lost", "192.0.2.1")
	node.internal = "192.0.2.9"
	w.nodes["n0"] = node
	delete(w.pods, "p0")
	g.settle(t, w.input(nothing))
	leads("the pod is lost, and the node has another address", "192.0.2.9")
	delete(w.nodes, "n0")
	g.settle(t, w.input(func(kind world.Kind, _ string) bool { return kind == world.KindNode }))
	if b := g.rows()["BalancingPolicy/a"].Backends; len(b) > 0 {
		t.Errorf("the node is gone: leads to %+v", b)
	}
}

// Before everybody can read policies there are none; while a restored record is in quarantine none goes.
func TestFormatAndQuarantineAreHeeded(t *testing.T) {
	w := plain().with(toPods("a", 1))
	g := newGroup(t, format-1)
	if out := g.settle(t, w.input(everything)); len(g.rows()) > 0 || len(out.Waiting) != 1 || out.Waiting[0].Code != WaitsForFormat {
		t.Errorf("got %v: %q", slices.Collect(maps.Keys(g.rows())), said(out))
	}
	g = newGroup(t, format)
	g.settle(t, w.input(everything))
	g.must(t, &fsm.NewEpoch{Group: "test", Epoch: 2, Cause: "restored"})
	if out := g.settle(t, plain().input(everything)); len(g.rows()) != 1 || len(out.Waiting) != 1 || out.Waiting[0].Code != WaitsForEvidence {
		t.Errorf("got %v: %q", slices.Collect(maps.Keys(g.rows())), said(out))
	}
}

// Balancing §6: the record has the UID by which a static pod's node knows it beside that of its mirror, by which its absence is judged; also
// where the row was made before that was known.
// Rule: balancing §6.
func TestStaticPodsKeepBothUIDs(t *testing.T) {
	g := newGroup(t, format)
	local := toLocal("a", 1)
	local.spare = true
	in := plain().with(local).input(everything)
	const id = "LocalRedirectPolicy/a"
	g.settle(t, in)
	if got := g.rows()[id].Backends; len(got) != 1 || got[0].HostUID != "" {
		t.Fatalf("a pod of the API server's: %+v", got)
	}
	static := *in.Pods[0]
	static.HostUID = "5f3c9d0b6a4e8f7c1d2b3a4958677685"
	in.Pods = []*world.Pod{&static}
	g.settle(t, in)
	if got := g.rows()[id].Backends; len(got) != 1 || got[0].HostUID != static.HostUID || got[0].UID != static.UID {
		t.Errorf("a static pod: %+v", got)
	}
	in.Pods, in.MayRemove = nil, nil
	g.settle(t, in)
	if got := g.rows()[id].Backends; len(got) != 1 || got[0].HostUID != static.HostUID {
		t.Errorf("one that no source shows: %+v", got)
	}
}
