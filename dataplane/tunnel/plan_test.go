// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// mKernel is an interface as the kernel keeps it: by address, each once.
type mKernel struct {
	there     bool
	settings  Settings
	mac       MAC
	mtu       int
	up        bool
	addresses map[netip.Prefix]bool
	neighbour map[netip.Addr]MAC
	forward   map[MAC]netip.Addr
}

func (k *mKernel) do(t *rapid.T, c Change) {
	if c.Do != Create && !k.there {
		t.Fatalf("%s, and there is no interface", c)
	}
	switch c.Do {
	case Create:
		if k.there {
			t.Fatalf("%s, and there is one", c)
		}
		*k = mKernel{true, c.Link, c.MAC, c.MTU, false, map[netip.Prefix]bool{}, map[netip.Addr]MAC{}, map[MAC]netip.Addr{}}
	case Delete:
		*k = mKernel{}
	case SetMAC:
		k.mac = c.MAC
	case SetMTU:
		k.mtu = c.MTU
	case SetUp:
		k.up = true
	case AddAddress:
		k.addresses[c.Address] = true
	case DropAddress:
		delete(k.addresses, c.Address)
	case PutNeighbour:
		k.neighbour[c.Neighbour.Address] = c.Neighbour.MAC
	case DropNeighbour:
		if k.neighbour[c.Neighbour.Address] != c.Neighbour.MAC {
			t.Fatalf("%s, which is not there", c)
		}
		delete(k.neighbour, c.Neighbour.Address)
	case PutForward:
		k.forward[c.Forward.MAC] = c.Forward.Remote
	case DropForward:
		if k.forward[c.Forward.MAC] != c.Forward.Remote {
			t.Fatalf("%s, which is not there", c)
		}
		delete(k.forward, c.Forward.MAC)
	default:
		t.Fatalf("unknown verb %q", c.Do)
	}
}

// read is what an Edge would tell.
func (k *mKernel) read() *Link {
	if !k.there {
		return nil
	}
	l := &Link{Settings: k.settings, MAC: k.mac, MTU: k.mtu, Up: k.up}
	for a := range k.addresses {
		l.Addresses = append(l.Addresses, a)
	}
	for a, m := range k.neighbour {
		l.Neighbours = append(l.Neighbours, Neighbour{a, m})
	}
	for m, r := range k.forward {
		l.Forwards = append(l.Forwards, Forward{m, r})
	}
	l.sort()
	return l
}

// reaches tells whether packets to an address of a host get to where it is.
func (k *mKernel) reaches(address, underlay netip.Addr) bool {
	mac, known := k.neighbour[address]
	return k.there && k.up && known && k.forward[mac] == underlay
}

type mHost struct {
	number   uint32
	underlay netip.Addr
}

func drawHosts(t *rapid.T, when string) map[string]mHost {
	out := map[string]mHost{}
	numbers := rapid.Permutation([]uint32{1, 2, 3, 4, 70000}).Draw(t, when+" numbers")
	for i := range 4 {
		if rapid.IntRange(0, 3).Draw(t, fmt.Sprint(when, " host ", i)) > 0 || i == 0 {
			at := rapid.IntRange(0, 1).Draw(t, fmt.Sprint(when, " moved ", i))
			out[fmt.Sprint("n", i)] = mHost{numbers[i], netip.AddrFrom4([4]byte{198, 51, 100, byte(10*at + i + 1)})}
		}
	}
	return out
}

func addressesOf(number uint32) []netip.Addr {
	return []netip.Addr{
		netip.AddrFrom4([4]byte{10, 250 + byte(number>>16), byte(number >> 8), byte(number)}),
		netip.MustParseAddr(fmt.Sprintf("fd00:250::%x:%x", number>>16, number&0xffff)),
	}
}

func wantOf(hosts map[string]mHost, port uint16) *Link {
	own := hosts["n0"]
	l := &Link{Settings: Settings{VNI: 7, Port: port, Local: own.underlay, Plain: true}, MAC: macOf(own.number), MTU: 1450, Up: true}
	for _, a := range addressesOf(own.number) {
		l.Addresses = append(l.Addresses, netip.PrefixFrom(a, 15))
	}
	for name, h := range hosts {
		if name == "n0" {
			continue
		}
		l.Forwards = append(l.Forwards, Forward{macOf(h.number), h.underlay})
		for _, a := range addressesOf(h.number) {
			l.Neighbours = append(l.Neighbours, Neighbour{a, macOf(h.number)})
		}
	}
	l.sort()
	return l
}

// Balancing §13.2: whatever is there, a plan leads to what is wanted, and a second one has nothing to do. A host that stays where it is
// is reached after every single change, unless the interface has to be made anew.
// Rule: balancing §13.
func TestPropertyPlanLeadsToWhatIsWanted(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		k := &mKernel{}
		var before map[string]mHost
		var ports uint16
		for step := range rapid.IntRange(1, 4).Draw(t, "states") {
			if rapid.IntRange(0, 5).Draw(t, "none") == 0 {
				for _, c := range Plan(nil, k.read()) {
					k.do(t, c)
				}
				if before = nil; k.there {
					t.Fatal("an interface is left")
				}
				continue
			}
			hosts := drawHosts(t, fmt.Sprint("state ", step))
			port := rapid.SampledFrom([]uint16{7446, 7446, 7446, 8472}).Draw(t, "port")
			want := wantOf(hosts, port)
			anew := before == nil || before["n0"].underlay != hosts["n0"].underlay || port != ports
			for _, c := range Plan(want, k.read()) {
				k.do(t, c)
				for name, h := range hosts {
					if name == "n0" || anew || before[name] != h {
						continue
					}
					for _, a := range addressesOf(h.number) {
						if !k.reaches(a, h.underlay) {
							t.Fatalf("%s is not reached after: %s", name, c)
						}
					}
				}
			}
			got := k.read()
			if got.Settings != want.Settings || got.MAC != want.MAC || got.MTU != want.MTU || !got.Up || !slices.Equal(got.Addresses, want.Addresses) ||
				!slices.Equal(got.Neighbours, want.Neighbours) || !slices.Equal(got.Forwards, want.Forwards) {
				t.Fatalf("got  %+v\nwant %+v", got, want)
			}
			if again := Plan(want, got); len(again) > 0 {
				t.Fatalf("a second plan: %v", again)
			}
			before, ports = hosts, port
		}
	})
}

// Balancing §13.2: after the additions of a plan new hosts are reached, and so are those that leave, until the rest of the plan: clients are led to
// the former only after the additions, and to the latter until the rest.
// Rule: balancing §13.
func TestPropertyNewWaysComeFirst(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		k := &mKernel{}
		before := drawHosts(t, "before")
		after := drawHosts(t, "after")
		after["n0"] = before["n0"]
		numbers := map[uint32]bool{} // whose they are afterwards
		for name, h := range after {
			if name != "n0" && h.number == before["n0"].number {
				delete(after, name)
				continue
			}
			numbers[h.number] = true
		}
		for _, c := range Plan(wantOf(before, 7446), k.read()) {
			k.do(t, c)
		}
		want := wantOf(after, 7446)
		for _, c := range Additions(want, k.read()) {
			k.do(t, c)
		}
		reached := func(name string, h mHost) {
			t.Helper()
			for _, a := range addressesOf(h.number) {
				if !k.reaches(a, h.underlay) {
					t.Fatalf("%s is not reached at %s", name, a)
				}
			}
		}
		for name, h := range after {
			if name != "n0" {
				reached(name, h)
			}
		}
		for name, h := range before {
			if name != "n0" && !numbers[h.number] {
				reached(name, h)
			}
		}
		for _, c := range Plan(want, k.read()) {
			k.do(t, c)
		}
		if left := Plan(want, k.read()); len(left) > 0 {
			t.Fatalf("left to do: %v", left)
		}
	})
}

// Balancing §13.4: a proxy port leads to ready pods of the host itself, to others only while there is none.
// Rule: balancing §13.
func TestProxyPortsPreferPodsOfTheHost(t *testing.T) {
	port := desired.ProxyPort{Port: desired.Port{Protocol: 6, Number: 10080}, Target: 8080}
	pod := func(node, address string, ready bool) desired.ProxiedPod {
		return desired.ProxiedPod{Node: node, Address: netip.MustParseAddr(address), Ready: ready, Ports: []desired.ProxyPort{port}}
	}
	for name, c := range map[string]struct {
		pods []desired.ProxiedPod
		want []string
	}{
		"own":            {[]desired.ProxiedPod{pod("n1", "10.0.1.1", true), pod("n1", "10.0.1.2", true), pod("n2", "10.0.2.1", true)}, []string{"10.0.1.1", "10.0.1.2"}},
		"ready":          {[]desired.ProxiedPod{pod("n1", "10.0.1.1", false), pod("n1", "10.0.1.2", true)}, []string{"10.0.1.2"}},
		"elsewhere":      {[]desired.ProxiedPod{pod("n1", "10.0.1.1", false), pod("n2", "10.0.2.1", true)}, []string{"10.0.2.1"}},
		"own not ready":  {[]desired.ProxiedPod{pod("n1", "10.0.1.1", false), pod("n2", "10.0.2.1", false)}, []string{"10.0.1.1"}},
		"none ready":     {[]desired.ProxiedPod{pod("n2", "10.0.2.1", false)}, []string{"10.0.2.1"}},
		"of each family": {[]desired.ProxiedPod{pod("n1", "10.0.1.1", true), pod("n2", "fd00::2", true)}, []string{"10.0.1.1", "fd00::2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serviceOf(&desired.Proxy{Name: "BalancingPolicy/a", Pods: c.pods}, "n1", nil)
			var got []string
			for _, e := range s.Endpoints {
				if got = append(got, e.Address.String()); e.Ports[0].Port.Number != 8080 || e.Ports[0].Name != s.Frontends[0].Name {
					t.Errorf("endpoint %+v", e)
				}
			}
			if len(s.Frontends) != 1 || s.Frontends[0].Port != port.Port || !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, not %v", s.Frontends, got, c.want)
			}
		})
	}
}
