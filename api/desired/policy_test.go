// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func drawPolicy(t *rapid.T) desired.Policy {
	address := rapid.SampledFrom([]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")})
	r := desired.Policy{
		Name:   rapid.SampledFrom([]string{"BalancingPolicy/a", "LocalRedirectPolicy/a"}).Draw(t, "name"),
		Number: rapid.Uint32().Draw(t, "number"), Created: rapid.Int64().Draw(t, "created"),
		EveryNode: rapid.Bool().Draw(t, "every node"), Outside: rapid.Bool().Draw(t, "outside"), OfService: rapid.Bool().Draw(t, "of a Service"),
		Mode:     rapid.SampledFrom([]string{desired.ToPods, desired.ToHostPorts, desired.ToProxies, desired.ToAddresses, desired.ToLocalPods}).Draw(t, "mode"),
		SpareOwn: rapid.Bool().Draw(t, "spares its own"), FallThrough: rapid.Bool().Draw(t, "falls through"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "nodes") {
		r.Nodes = append(r.Nodes, rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "captures") {
		r.Captures = append(r.Captures, desired.Capture{Address: address.Draw(t, "captured"), Port: drawPort(t), Target: rapid.Uint16().Draw(t, "target")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "backends") {
		r.Backends = append(r.Backends, desired.PolicyBackend{
			Address: address.Draw(t, "backend"), Node: rapid.SampledFrom([]string{"", "n1"}).Draw(t, "on"), Ready: rapid.Bool().Draw(t, "ready"),
			UID: rapid.SampledFrom([]string{"", "u1"}).Draw(t, "pod"),
		})
	}
	if rapid.Bool().Draw(t, "probed") {
		seconds := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second
		})
		r.Probe = desired.Probe{
			Type: rapid.SampledFrom([]string{desired.ProbeTCP, desired.ProbeHTTP, "yet unknown"}).Draw(t, "type"), Port: rapid.Uint16().Draw(t, "probed port"),
			Path: rapid.SampledFrom([]string{"", "/ok"}).Draw(t, "path"), Interval: seconds.Draw(t, "interval"), Timeout: seconds.Draw(t, "timeout"),
			Healthy: rapid.Uint32().Draw(t, "healthy"), Unhealthy: rapid.Uint32().Draw(t, "unhealthy"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "statuses") {
			r.Probe.Statuses = append(r.Probe.Statuses, rapid.Uint32Range(100, 599).Draw(t, "status"))
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "verdicts") {
		r.Verdicts = append(r.Verdicts, desired.ProbeVerdict{Address: address.Draw(t, "judged"), Port: drawPort(t), Healthy: rapid.Bool().Draw(t, "healthy")})
	}
	return r
}

// They come out as they went in, and the one that does not change is the same pointer in the next state.
func TestPropertyRedirectsComeOutAsTheyWentIn(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		want := drawPolicy(t)
		value, err := desired.PolicyValue(want)
		must(t, err)
		m := model{desired.PolicyKey(want.Name): value}
		var steps desired.Steps
		if _, err := steps.Add(m.full(t, fsm.Revision{Epoch: 1, Index: 1})); err != nil {
			t.Fatal(err)
		}
		have := steps.State.Policies()
		if len(have) != 1 || !reflect.DeepEqual(*have[0], want) {
			t.Fatalf("have %+v\nwant %+v", have, want)
		}
		key, node := desired.NodeKey("n1"), []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8::1")}
		value, err = desired.NodeValue(node)
		must(t, err)
		m[key] = value
		var p desired.Pieces
		must(t, p.Put(key, value))
		changes, err := p.Bytes()
		must(t, err)
		if _, err := steps.Add(&fairleadv1.SyncResponse{Revision: desired.RevisionMessage(fsm.Revision{Epoch: 1, Index: 2}), Changes: changes, Digest: m.digest()}); err != nil {
			t.Fatal(err)
		}
		if next := steps.State.Policies(); len(next) != 1 || next[0] != have[0] || !reflect.DeepEqual(steps.State.NodeAddresses(), node) {
			t.Fatalf("%p became %v, nodes at %v", have[0], next, steps.State.NodeAddresses())
		}
	})
}
