// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/netnstest"
)

// askers are all kinds of places from which somebody may ask for a service address of the lab's node.
//
//	client -- switch -- eth0 node cni0 -- pod
//	peer ------'               '-- br0 -- bridged
//	                           '-- br1 -- filtered     as bridged, and netfilter sees what is bridged (br_netfilter)
func (l *lab) askers() map[string]*netnstest.Namespace {
	l.t.Helper()
	all := map[string]*netnstest.Namespace{"outside": l.client, "node": l.node, "pod": l.pod}
	l.node.SetSysctl("ipv4/icmp_ratelimit", "0") // of errors to one asker, of whom there are many here
	l.node.SetSysctl("ipv6/icmp/ratelimit", "0")
	peer := netnstest.New(l.t, "peer")
	netnstest.Join(
		netnstest.Link{In: l.border, Name: "port3", Addresses: []string{"192.0.3.254/24", "2001:db8:a3::254/64"}},
		netnstest.Link{In: peer, Name: "eth0", Addresses: []string{"192.0.3.12/24", "2001:db8:a3::12/64"}},
	)
	defaultRoutes(peer, "192.0.3.254", "2001:db8:a3::254")
	all["other node"] = peer
	all["pod of a bridge"] = l.bridged("br0", 0, 1)
	if _, err := os.Stat("/proc/sys/net/bridge"); err == nil {
		l.node.SetSysctl("bridge/bridge-nf-call-iptables", "0")
		l.node.SetSysctl("bridge/bridge-nf-call-ip6tables", "0")
		all["pod of a bridge with br_netfilter"] = l.bridged("br1", 1, 2)
	} else {
		l.t.Log("not asked from a bridge with br_netfilter: this kernel has none")
	}
	for _, n := range all {
		n.SetSysctl("ipv4/ping_group_range", "0 0")
	}
	return all
}

// bridged is a pod on a bridge of the node, whose packets netfilter sees there or not. The number tells its networks from others.
func (l *lab) bridged(name string, seen, number int) *netnstest.Namespace {
	l.t.Helper()
	gateway4, gateway6 := fmt.Sprintf("10.245.%d.1", number), fmt.Sprintf("2001:db8:f%d::1", number)
	l.node.Run("ip", "link", "add", name, "type", "bridge", "nf_call_iptables", fmt.Sprint(seen), "nf_call_ip6tables", fmt.Sprint(seen))
	l.node.Run("ip", "address", "add", gateway4+"/24", "dev", name)
	l.node.Run("ip", "address", "add", gateway6+"/64", "dev", name, "nodad")
	l.node.Run("ip", "link", "set", name, "up")
	pod := netnstest.New(l.t, name+" pod")
	netnstest.Join(netnstest.Link{In: l.node, Name: name + "p"}, netnstest.Link{
		In: pod, Name: "eth0", Addresses: []string{fmt.Sprintf("10.245.%d.2/24", number), fmt.Sprintf("2001:db8:f%d::2/64", number)},
	})
	l.node.Run("ip", "link", "set", name+"p", "master", name)
	defaultRoutes(pod, gateway4, gateway6)
	return pod
}

func defaultRoutes(n *netnstest.Namespace, via4, via6 string) {
	n.Run("ip", "route", "add", "default", "via", via4)
	n.Run("ip", "route", "add", "default", "via", via6)
}

// How a question ends.
const (
	answered = "answered"
	refused  = "refused"
	silence  = "silence"
)

// question is one that an asker puts to a service address.
type question struct {
	asker, protocol, about string
	to                     netip.AddrPort
	want                   string
}

func (q question) String() string {
	return fmt.Sprintf("%s asks %s by %s (%s)", q.asker, q.to, q.protocol, q.about)
}

// put asks, and tells how it ended.
func (q question) put(from *netnstest.Namespace, patience time.Duration) string {
	var err error
	switch {
	case q.protocol != "ICMP echo":
		err = exchange(from, q.protocol, q.to, patience)
	case q.to.Addr().Is4():
		err = ping(from, q.to.Addr(), unix.AF_INET, unix.IPPROTO_ICMP, 8, 0)
	default:
		err = ping(from, q.to.Addr(), unix.AF_INET6, unix.IPPROTO_ICMPV6, 128, 129)
	}
	switch {
	case err == nil:
		return answered
	case errors.Is(err, syscall.ECONNREFUSED), q.asker == "node" && errors.Is(err, syscall.EPERM):
		return refused // the node's own programs hear at once that the packet was not sent, too
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.EAGAIN):
		return silence
	}
	return err.Error()
}

// exchange connects, says something and waits for a word.
func exchange(from *netnstest.Namespace, protocol string, to netip.AddrPort, patience time.Duration) error {
	c, err := from.Dial(protocol, to.String(), patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("?")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// putAll puts questions all at once, and fails unless each ends as it is to.
func putAll(t *testing.T, askers map[string]*netnstest.Namespace, patience time.Duration, questions []question) {
	t.Helper()
	var asking sync.WaitGroup
	for _, q := range questions {
		asking.Go(func() {
			if got := q.put(askers[q.asker], patience); got != q.want {
				t.Errorf("%s: %s, want %s", q, got, q.want)
			}
		})
	}
	asking.Wait()
}

// Whoever asks for what is not served is refused at once, wherever he is: what came by an interface of the switch goes
// back there, all else by the main table. Only who is in no source range hears nothing, and pings are answered to all.
func TestWhoeverAsksIsAnsweredOrRefused(t *testing.T) {
	for name, addresses := range map[string]int{"rules": 5, "marked": 8} {
		for _, translated := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s-translated-%v", name, translated), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				l.node.Run("nft", "delete", "table", "inet", "proxy")
				o := l.options()
				o.RulesMax = 5
				situations := l.situations(t, l.steerWith(o), addresses, translated)
				askers := l.askers()
				heard, unheard := questions(askers, situations)
				putAll(t, askers, enough, heard)
				for asker, n := range askers {
					if again := n.Repeated(); again > 0 {
						t.Errorf("%s: %d connections were asked for once more: not all were answered at once", asker, again)
					}
				}
				putAll(t, askers, hasty/4, unheard)
			})
		}
	}
}

// enough is how long an asker waits who is to be told something: whoever waits that long hears nothing at all.
const enough = 30 * time.Second

// questions are all that askers can put, those apart that nobody answers.
func questions(askers map[string]*netnstest.Namespace, situations []situation) (heard, unheard []question) {
	for asker := range askers {
		for i, is := range situations {
			for _, first := range []netip.Addr{vip4, vip6} {
				a := many(first, len(situations))[i]
				heard = append(heard, question{asker, "ICMP echo", is.name, netip.AddrPortFrom(a, 0), answered})
				for _, protocol := range is.protocols {
					q := question{asker, protocol, is.name, netip.AddrPortFrom(a, is.port), is.want}
					own := asker == "node" && protocol == "udp"
					switch {
					case own && is.want == silence:
						q.want = refused // his own kernel tells him that it sends nothing
					case own && is.name == untranslated && a.Is4():
						q.want = silence // his own kernel has no address to refuse it from: docs/nodes.md
					}
					if q.want == silence {
						unheard = append(unheard, q)
					} else {
						heard = append(heard, q)
					}
				}
			}
		}
	}
	return heard, unheard
}

// untranslated is a port that a Service has, while nobody serves it.
const untranslated = "nobody translates it"

// situation is what somebody finds at a service address.
type situation struct {
	name      string
	port      uint16
	protocols []string
	want      string
}

// situations has the lab's node serve, at one address of each family after the other, what each of the situations tells of.
func (l *lab) situations(t *testing.T, s *steer.Steer, addresses int, translated bool) []situation {
	t.Helper()
	w, both := wanted(append(many(vip4, addresses), many(vip6, addresses)...)...), []string{"tcp", "udp"}
	for i := range w.Addresses {
		w.Addresses[i].Ports = []desired.Port{{Protocol: 6, Number: 80}, {Protocol: 17, Number: 80}}
	}
	if !translated { // kube-proxy neither
		l.apply(s, w)
		return []situation{{untranslated, 80, both, refused}, {"no such port", 4711, both, refused}}
	}
	ready := []desired.Endpoint{endpoint("10.244.0.2"), endpoint("2001:db8:f::2")}
	unready := slices.Clone(ready)
	for i := range unready {
		unready[i].Ready, unready[i].Serving = false, false
	}
	elsewhere := []netip.Prefix{netip.MustParsePrefix("192.0.2.200/32"), netip.MustParsePrefix("2001:db8:77::/64")}
	var services []desired.Service
	for n, is := range []struct {
		endpoints []desired.Endpoint
		ranges    []netip.Prefix
	}{{nil, nil}, {ready, nil}, {ready, nil}, {unready, nil}, {ready, elsewhere}} {
		services = append(services, desired.Service{
			Name: fmt.Sprintf("default/s%d", n), Addresses: []netip.Addr{many(vip4, n+1)[n], many(vip6, n+1)[n]},
			Frontends: []desired.Frontend{
				{Name: "http", Port: desired.Port{Protocol: 6, Number: 80}}, {Name: "http", Port: desired.Port{Protocol: 17, Number: 80}},
			},
			Endpoints: is.endpoints, SourceRanges: is.ranges,
		})
	}
	state := serviceState(t, w, services...)
	translation, err := nat.New(nat.Options{Node: "node", NetNS: l.node.FD(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []interface {
		Apply(context.Context, desired.State) ([]agent.Failure, error)
	}{s, translation} {
		if failed, err := part.Apply(context.Background(), state); err != nil || len(failed) > 0 {
			t.Fatalf("%T: %v, %v", part, err, failed)
		}
	}
	return []situation{
		{"no endpoint", 80, both, refused}, {"no such port", 4711, both, refused}, {"ready", 80, []string{"tcp"}, answered},
		{"not ready", 80, both, refused}, {"source range", 80, both, silence},
	}
}
