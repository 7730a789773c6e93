// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// meshed is a state with tunnels, of nodes that have one and a host outside the cluster that does, too, or not, and one policy.
func meshed(t *testing.T, own *desired.TunnelHost, d desired.Policy, nodes ...string) desired.State {
	t.Helper()
	m := desired.NodeMessage("g", nil, nil)
	m.Tunnels = desired.TunnelMessage(&desired.TunnelSettings{
		Port: 7446, VNI: 1, Ranges: []netip.Prefix{netip.MustParsePrefix("10.250.0.0/24"), netip.MustParsePrefix("fd00:250::/64")}, Own: own,
	})
	end := func(n uint32) desired.TunnelHost {
		return desired.TunnelHost{Underlay: netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 250, 0, byte(n)})}, Number: n}
	}
	items := map[string][]byte{}
	value, err := desired.PolicyValue(d)
	for i, n := range nodes {
		if err == nil {
			items[desired.TunnelHostKey(n)], err = desired.TunnelHostValue(end(uint32(i + 1)))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	items[desired.PolicyKey(d.Name)] = value
	var sum desired.Digest
	changes := &fairleadv1.Changes{}
	for key, value := range items {
		sum = sum.Plus(key, value)
		changes.Put = append(changes.Put, &fairleadv1.Item{Key: []byte(key), Value: value})
	}
	return stateOf(t, m, changes, sum)
}

// Balancing §7, §13: where a host has no tunnel, proxy addresses that the group manages are no backends: calls go to those that an administrator
// wrote, else they are refused at once, or go on where the policy says so. It is said once for each policy, and again after it was otherwise.
// Rule: balancing §13.
func TestWithoutATunnelProxyAddressesAreNoBackends(t *testing.T) {
	ip4, ip6 := netip.MustParseAddr("169.254.77.1"), netip.MustParseAddr("fd00:77::1")
	policy := desired.Policy{
		Name: "BalancingPolicy/a", Number: 7, EveryNode: true, Outside: true, Mode: desired.ToProxies,
		Captures: []desired.Capture{{Address: ip4, Port: web.Port, Target: 10080}, {Address: ip6, Port: web.Port, Target: 10080}},
	}
	backends := func(list ...string) (out []desired.PolicyBackend) {
		for _, a := range list {
			out = append(out, desired.PolicyBackend{Address: netip.MustParseAddr(a), Ready: true})
		}
		return out
	}
	managed, both := backends("10.250.0.2", "fd00:250::2"), backends("10.250.0.2", "203.0.113.7", "fd00:250::2")
	with := func(list []desired.PolicyBackend, fall bool, mode string) desired.Policy {
		d := policy
		d.Backends, d.FallThrough, d.Mode = list, fall, mode
		return d
	}
	own := &desired.TunnelHost{Underlay: netip.MustParseAddr("198.51.100.9"), Addresses: []netip.Addr{netip.MustParseAddr("10.250.0.9")}, Number: 9}
	for name, c := range map[string]struct {
		config Config
		state  desired.State
		v4, v6 string
		told   bool
	}{
		"a tunnel":             {Config{Node: "n1", Tunnels: true}, meshed(t, nil, with(managed, false, desired.ToProxies), "n1"), "use 10.250.0.2", "use fd00:250::2", false},
		"none is made":         {Config{Node: "n1"}, meshed(t, nil, with(managed, false, desired.ToProxies), "n1"), "refuse", "refuse", true},
		"none is given yet":    {Config{Node: "n1", Tunnels: true}, meshed(t, nil, with(managed, false, desired.ToProxies), "n2"), "refuse", "refuse", true},
		"an administrator's":   {Config{Node: "n1"}, meshed(t, nil, with(both, false, desired.ToProxies)), "use 203.0.113.7", "refuse", true},
		"falls through":        {Config{Node: "n1"}, meshed(t, nil, with(managed, true, desired.ToProxies)), "pass", "pass", true},
		"outside, a tunnel":    {Config{Node: "n1", Outside: true, Tunnels: true}, meshed(t, own, with(managed, false, desired.ToProxies)), "use 10.250.0.2", "use fd00:250::2", false},
		"outside, none":        {Config{Node: "n1", Outside: true}, meshed(t, nil, with(managed, false, desired.ToProxies)), "refuse", "refuse", true},
		"listed by themselves": {Config{Node: "n1"}, meshed(t, nil, with(managed, false, desired.ToAddresses)), "use 10.250.0.2", "use fd00:250::2", false},
	} {
		k := newMemory()
		var said bytes.Buffer
		s, err := Over(Options{Config: c.config, Room: room, Log: slog.New(slog.NewTextHandler(&said, nil))}, k)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a second time nothing is said
			if _, err := s.Apply(t.Context(), c.state); err != nil {
				t.Fatal(err)
			}
		}
		for address, want := range map[netip.Addr]string{ip4: c.v4, ip6: c.v6} {
			a := k.rows.Resolve(Call{To: Place{Address: address, Port: 80, Protocol: TCP}})
			got := a.Verdict.String()
			if a.Verdict == Use {
				got += " " + a.Backend.Addr().String()
			}
			if got != want {
				t.Errorf("%s: %s at %s, want %s", name, got, address, want)
			}
		}
		times := 0
		if c.told {
			times = 1
		}
		if n := strings.Count(said.String(), "this host has no tunnel"); n != times {
			t.Errorf("%s: said %d times:\n%s", name, n, said.String())
		}
		if b := c.config.Beyond(c.state, c.state.Policies()[0]); b != c.told {
			t.Errorf("%s: beyond reach: %t", name, b)
		}
	}
}

// A host that gets its tunnel has its policies lead there, and does not any more when it loses it.
// Rule: balancing §13.
func TestTunnelsThatComeAndGoAreHeeded(t *testing.T) {
	d := desired.Policy{
		Name: "BalancingPolicy/a", Number: 7, EveryNode: true, Mode: desired.ToProxies, Captures: []desired.Capture{{Address: vip, Port: web.Port, Target: 10080}},
		Backends: []desired.PolicyBackend{{Address: netip.MustParseAddr("10.250.0.2"), Ready: true}},
	}
	k := newMemory()
	s, err := Over(Options{Config: Config{Node: "n1", Tunnels: true}, Room: room}, k)
	if err != nil {
		t.Fatal(err)
	}
	without := beyond("n1", true, meshed(t, nil, d))
	w := wanted{redirects: []*desired.Policy{&d}}
	for i, c := range []struct {
		beyond []netip.Prefix
		want   Verdict
	}{{without, Refuse}, {nil, Use}, {without, Refuse}} {
		w.beyond = c.beyond
		if err := s.apply(w); err != nil {
			t.Fatal(err)
		}
		if a := k.rows.Resolve(Call{To: Place{Address: vip, Port: 80, Protocol: TCP}}); a.Verdict != c.want {
			t.Errorf("step %d: %s, want %s", i, a.Verdict, c.want)
		}
	}
}

func stateOf(t *testing.T, own *fairleadv1.NodeState, changes *fairleadv1.Changes, sum desired.Digest) desired.State {
	t.Helper()
	data, err := proto.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	steps := desired.Steps{}
	if _, err := steps.Add(&fairleadv1.SyncResponse{
		Revision: desired.RevisionMessage(fsm.Revision{Epoch: 1, Index: 1}), Full: true, Changes: [][]byte{data}, Digest: sum[:], Node: own,
	}); err != nil {
		t.Fatal(err)
	}
	return steps.State
}
