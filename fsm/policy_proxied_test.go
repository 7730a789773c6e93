// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// samePlace is what ProxiedPod.SamePlace promises, field by field.
func samePlace(p, o ProxiedPod) bool {
	return p.Node == o.Node && p.Pod == o.Pod && p.UID == o.UID && p.Address == o.Address &&
		slices.EqualFunc(p.Ports, o.Ports, func(a, b ProxyPort) bool { return a.Port == b.Port })
}

// proxiedOneByOne looks each pod up among all of before.
func (tx *txn) proxiedOneByOne(old *Policy, pods []ProxiedPod) []ProxiedPod {
	out := slices.Clone(pods)
	for i := range out {
		out[i].Since = tx.revision()
		if old == nil {
			continue
		}
		if j := slices.IndexFunc(old.Proxied, func(p ProxiedPod) bool { return samePlace(out[i], p) }); j >= 0 {
			out[i].Since = old.Proxied[j].Since
		}
	}
	return out
}

// drawPlaces draws a few places, each of which differs from the first one in one thing, if in any.
func drawPlaces(t *rapid.T) []ProxiedPod {
	draws := []func(*ProxiedPod){
		func(p *ProxiedPod) { p.Node = rapid.SampledFrom([]NodeID{"n1", "n2", "n1u1"}).Draw(t, "node") },
		func(p *ProxiedPod) { p.Pod = rapid.SampledFrom([]string{"shop/p1", "shop/p2"}).Draw(t, "pod") },
		func(p *ProxiedPod) { p.UID = rapid.SampledFrom([]string{"u1", "u2", ""}).Draw(t, "uid") },
		func(p *ProxiedPod) {
			p.Address = rapid.SampledFrom([]netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fe80::1%eth0")}).Draw(t, "address")
		},
		func(p *ProxiedPod) {
			p.Ports = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ProxyPort {
				return ProxyPort{
					Port:   Port{Protocol: rapid.SampledFrom([]Protocol{TCP, UDP}).Draw(t, "protocol"), Number: rapid.SampledFrom([]uint16{1, 80, 256, 0x5001}).Draw(t, "port")},
					Target: rapid.SampledFrom([]uint16{80, 8080}).Draw(t, "target"),
				}
			}), 0, 2).Draw(t, "ports")
		},
	}
	var first ProxiedPod
	for _, draw := range draws {
		draw(&first)
	}
	places := []ProxiedPod{first}
	for range rapid.IntRange(0, 4).Draw(t, "others") {
		other := first
		draws[rapid.IntRange(0, len(draws)-1).Draw(t, "differs in")](&other)
		places = append(places, other)
	}
	return places
}

// drawProxiedPods draws pods in some places, several in one of them too.
func drawProxiedPods(t *rapid.T, places []ProxiedPod, name string) []ProxiedPod {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ProxiedPod {
		p := rapid.SampledFrom(places).Draw(t, "place")
		p.Ready, p.Since = rapid.Bool().Draw(t, "ready"), Revision{Epoch: 1, Index: Index(rapid.IntRange(1, 9).Draw(t, "since"))}
		return p
	}), 0, 8).Draw(t, name)
}

// Since when pods are as they are comes to the same, however many are looked through.
func TestPodsBehindProxyAddressesAreFoundAsOneByOne(t *testing.T) {
	state := New()
	state.applied = 77
	testkit.Check(t, func(t *rapid.T) {
		tx := state.begin()
		var old *Policy
		places := drawPlaces(t)
		if rapid.Bool().Draw(t, "there was one") {
			old = &Policy{Proxied: drawProxiedPods(t, places, "before")}
		}
		pods := drawProxiedPods(t, places, "now")
		got, want := tx.proxied(old, pods), tx.proxiedOneByOne(old, pods)
		if !slices.EqualFunc(got, want, func(a, b ProxiedPod) bool { return a.Alike(b) && a.Since == b.Since }) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		for _, p := range pods {
			for _, o := range pods {
				if p.SamePlace(o) != samePlace(p, o) {
					t.Fatalf("%+v and %+v: %v", p, o, p.SamePlace(o))
				}
			}
		}
	})
}

// What one change of a policy costs for since when its pods are as they are.
func BenchmarkProxiedPods(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint("pods=", n), func(b *testing.B) {
			tx := New().begin()
			old := &Policy{}
			for i := range n {
				old.Proxied = append(old.Proxied, ProxiedPod{
					Node: NodeID(fmt.Sprint("node-", i%200)), Pod: fmt.Sprint("shop/pod-", i), UID: fmt.Sprint("uid-", i),
					Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Ports: []ProxyPort{{Port: Port{Protocol: TCP, Number: 80}, Target: 8080}},
				})
			}
			pods := slices.Clone(old.Proxied)
			slices.Reverse(pods)
			for name, proxied := range map[string]func(*Policy, []ProxiedPod) []ProxiedPod{"by place": tx.proxied, "one by one": tx.proxiedOneByOne} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						proxied(old, pods)
					}
				})
			}
		})
	}
}
