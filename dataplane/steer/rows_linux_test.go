// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// The tests of this file are named after the rows of the specification's table on node steering (kube-loadbalancer-controller §9), and of its
// acceptance criteria (kube-loadbalancer-controller §13).

// inBothModes runs a test with a rule for each address, and by mark.
func inBothModes(t *testing.T, test func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted)) {
	for name, n := range map[string]int{"rules": 1, "marked": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			o := l.options()
			o.RulesMax = 2
			s := l.steerWith(o)
			w := wanted(append(many(vip4, n), many(vip6, n)...)...)
			l.apply(s, w)
			if marked := strings.Contains(l.node.Run("ip", "rule"), "fwmark 0x1000/0x1000 lookup 101 proto 83"); marked != (n > 2) {
				t.Fatalf("by mark: %v", marked)
			}
			test(t, l, s, w)
		})
	}
}

// passed counts the packets to service addresses that pass a namespace.
func passed(n *netnstest.Namespace) (count func() int) {
	n.Feed(`table inet count { chain forward { type filter hook forward priority filter
		ip daddr 198.51.100.0/24 counter
		ip6 daddr 2001:db8:e1::/64 counter
	}
	}`, "nft", "-f", "-")
	packets := regexp.MustCompile(`packets (\d+)`)
	return func() (sum int) {
		for _, m := range packets.FindAllStringSubmatch(n.Run("nft", "list", "table", "inet", "count"), -1) {
			one, _ := strconv.Atoi(m[1]) // digits, as matched
			sum += one
		}
		return sum
	}
}

// Rule: kube-loadbalancer-controller §9.1, §13 row 7.
func TestAnUntranslatedPacketIsRefusedAndDoesNotLoop(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, _ steer.Wanted) {
		count := passed(l.border)
		for _, a := range []netip.Addr{vip4, vip6} {
			wantRefused(t, l.client, a, 81)
			wantRefused(t, l.client, a, 4711)
		}
		if n := count(); n != 4 {
			t.Errorf("4 packets passed the switch %d times", n)
		}
	})
}

// The control of the above: without rules they do loop, so that the count means something.
func TestWithoutSteeringAPacketLoops(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.node.Run("ip", "route", "replace", "default", "via", "192.0.2.254")
	count := passed(l.border)
	_, _ = dial(l.client, vip4, 81, hasty) // in vain
	if n := count(); n < 20 {
		t.Errorf("packets passed the switch only %d times", n)
	}
}

// Rule: kube-loadbalancer-controller §9.2.
func TestUDPIsRefusedToo(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		for _, a := range []netip.Addr{vip4, vip6} {
			err := l.client.Do(func() error {
				c, err := net.Dial("udp", netip.AddrPortFrom(a, 53).String())
				if err != nil {
					return err
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(testkit.Patience))
				if _, err := c.Write([]byte("?")); err != nil {
					return err
				}
				_, err = c.Read(make([]byte, 1))
				return err
			})
			if !strings.Contains(fmt.Sprint(err), syscall.ECONNREFUSED.Error()) { // one datagram, and its answer
				t.Errorf("%s: %v", a, err)
			}
		}
	})
}

// What waits on all addresses of a host that has the service address itself, as kube-proxy's IPVS mode makes it have,
// is reached at the Service's ports only.
// Rule: kube-loadbalancer-controller §9.3.
func TestNoHostPortIsReachableOnAServiceAddress(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		for _, a := range []netip.Addr{vip4, vip6} {
			l.node.Run("ip", "address", "add", netip.PrefixFrom(a, a.BitLen()).String(), "dev", "lo", "nodad")
		}
		testkit.Until(t, "IPv6 serves the address", func() bool {
			return strings.Contains(l.node.Run("ip", "-6", "route", "show", "table", "local"), vip6.String()+" dev lo")
		})
		l.answer(l.node, ":81", "host")
		l.answer(l.node, ":22", "ssh")
		for a, own := range map[netip.Addr]string{vip4: "192.0.2.11", vip6: "2001:db8:a::11"} {
			wantWord(t, l.client, a, 81, "host") // which leaves through the switch, though the source is chosen here
			wantRefused(t, l.client, a, 22)
			wantWord(t, l.border, netip.MustParseAddr(own), 22, "ssh")
		}
	})
}

// Rule: kube-loadbalancer-controller §9.3.
func TestHostSocketsAreNotReachedWithoutTheAddressEither(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		l.answer(l.node, ":22", "ssh")
		wantRefused(t, l.client, vip4, 22)
		wantRefused(t, l.client, vip6, 22)
	})
}

// The node's default route leads elsewhere, where nobody answers.
// Rule: kube-loadbalancer-controller §9.4, §13 row 7, §13 row 16.
func TestAnswersOfPodsLeaveThroughTheSwitch(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		wantWord(t, l.client, vip4, 80, "pod")
		wantWord(t, l.client, vip6, 80, "pod")
	})
}

// The control: without the switch they do not arrive.
func TestWithoutSWITCHAnswersLeaveByTheNodesDefault(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := wanted(vip4)
	w.Config.Switches = nil
	l.apply(l.steer(), w)
	if word, err := dial(l.client, vip4, 80, hasty); err == nil {
		t.Errorf("answered %q", word)
	}
	if !strings.Contains(l.log.String(), "no SWITCH of family IPv4 is named") {
		t.Errorf("no warning in %s", l.log)
	}
	if rules := l.node.Run("ip", "rule"); !strings.Contains(rules, "to 198.51.100.10 lookup 101") || strings.Contains(rules, "102") {
		t.Errorf("rules:\n%s", rules)
	}
}

// Masquerading changes what the answers look like where they are routed.
// Rule: kube-loadbalancer-controller §9.4.
func TestAnswersLeaveThroughTheSwitchWithMasquerade(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		l.node.Feed(`table inet back { chain postrouting { type nat hook postrouting priority srcnat
			oifname cni0 masquerade
		}
		}`, "nft", "-f", "-")
		wantWord(t, l.client, vip4, 80, "pod")
		wantWord(t, l.client, vip6, 80, "pod")
	})
}

// Pods that use a service address get their answers over their own network, not by the switch.
func TestAnswersToPodsStayInTheCluster(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		neighbour := netnstest.New(t, "neighbour")
		netnstest.Join(
			netnstest.Link{In: l.node, Name: "cni1", Addresses: []string{"10.245.0.1/24", "2001:db8:f1::1/64"}},
			netnstest.Link{In: neighbour, Name: "eth0", Addresses: []string{"10.245.0.2/24", "2001:db8:f1::2/64"}},
		)
		neighbour.Run("ip", "route", "add", "default", "via", "10.245.0.1")
		neighbour.Run("ip", "route", "add", "default", "via", "2001:db8:f1::1")
		wantWord(t, neighbour, vip4, 80, "pod")
		wantWord(t, neighbour, vip6, 80, "pod")
	})
}

// So do the node's own programs, which kube-proxy translates for in the output hook.
func TestTheNodeItselfReachesPodsByAServiceAddress(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		l.node.Feed(`table inet proxy { chain output { type nat hook output priority -100
			ip daddr 198.51.100.0/24 tcp dport 80 dnat ip to 10.244.0.2:8080
			ip6 daddr 2001:db8:e1::/64 tcp dport 80 dnat ip6 to [2001:db8:f::2]:8080
		}
		}`, "nft", "-f", "-")
		wantWord(t, l.node, vip4, 80, "pod")
		wantWord(t, l.node, vip6, 80, "pod")
		wantRefused(t, l.node, vip4, 4711)
		wantRefused(t, l.node, vip6, 4711)
	})
}

// Rule: kube-loadbalancer-controller §9.5, §9.8, §13 row 5.
func TestRulesAndTablesAreAsDocumented(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for range 10 { // restarts of the agent
		s := l.steer()
		l.apply(s, wanted(vip4, vip6))
		s.Close()
	}
	for command, want := range map[string]string{
		"ip rule": "0: from all lookup local\n30100: from all fwmark 0x3000/0x3000 lookup main proto 83\n30101: from all to 198.51.100.10 lookup 101 proto 83\n" +
			"30102: from 198.51.100.10 lookup 102 proto 83\n30103: from all fwmark 0x2000/0x2000 lookup 102 proto 83\n" +
			"32766: from all lookup main\n32767: from all lookup default\n",
		"ip -6 rule": "0: from all lookup local\n30100: from all fwmark 0x3000/0x3000 lookup main proto 83\n30101: from all to 2001:db8:e1::10 lookup 101 proto 83\n" +
			"30102: from 2001:db8:e1::10 lookup 102 proto 83\n30103: from all fwmark 0x2000/0x2000 lookup 102 proto 83\n" +
			"32766: from all lookup main\n",
		"ip route show table 101":    "local default dev lo proto 83 scope host src 192.0.2.11\n",
		"ip route show table 102":    "default via 192.0.2.254 dev eth0 proto 83\n",
		"ip -6 route show table 101": "local default dev lo proto 83 metric 1024 pref medium\n",
		"ip -6 route show table 102": "default via 2001:db8:a::254 dev eth0 proto 83 metric 1024 pref medium\n",
	} {
		args := strings.Fields(command)
		got := l.node.Run(args[0], args[1:]...)
		got = strings.ReplaceAll(strings.ReplaceAll(got, ":\t", ": "), " \n", "\n")
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", command, got, want)
		}
	}
}

// Rule: kube-loadbalancer-controller §9.6.
func TestNoNeighbourLearnsAServiceAddress(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted) {
		if got := l.node.Sysctl("ipv4/conf/eth0/arp_ignore"); got != "1" {
			t.Errorf("arp_ignore of eth0 is %s", got)
		}
		if got := l.node.Sysctl("ipv4/conf/cni0/arp_ignore"); got != "0" {
			t.Errorf("arp_ignore of cni0 is %s", got)
		}
		learned := func() string {
			for _, a := range []netip.Addr{vip4, vip6} {
				l.border.Run("ip", "route", "replace", a.String(), "dev", "port2")
				_, _ = dial(l.border, a, 81, hasty) // which asks
			}
			return l.border.Run("sh", "-c", "ip neigh show to "+vip4.String()+"; ip neigh show to "+vip6.String())
		}
		if got := learned(); strings.Contains(got, "lladdr") {
			t.Errorf("learned:\n%s", got)
		}
		// The control: with the old system alone the node answers ARP.
		if len(w.Addresses) == 2 {
			l.node.SetSysctl("ipv4/conf/eth0/arp_ignore", "0")
			l.border.Run("ip", "neigh", "flush", "all")
			if got := learned(); !strings.Contains(got, "lladdr") {
				t.Errorf("not learned without arp_ignore:\n%s", got)
			}
		}
	})
}

// Rule: kube-loadbalancer-controller §9.7.
func TestStrictReversePathFilterIsLoosenedAndRestored(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.node.SetSysctl("ipv4/conf/eth0/rp_filter", "1")
	l.node.SetSysctl("ipv4/conf/eth1/rp_filter", "0")
	l.node.SetSysctl("ipv4/conf/all/rp_filter", "0")
	before := picture(l.node)
	s := l.steer()
	l.apply(s, wanted(vip4))
	wantWord(t, l.client, vip4, 80, "pod")
	for name, want := range map[string]string{
		"eth0/rp_filter": "2", "eth0/src_valid_mark": "1", "eth1/rp_filter": "0", "all/rp_filter": "0", "cni0/rp_filter": l.node.Sysctl("ipv4/conf/default/rp_filter"),
	} {
		if got := l.node.Sysctl("ipv4/conf/" + name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	s.Close()
	s = l.steer() // a restart does not forget what they were
	l.apply(s, wanted())
	if after := picture(l.node); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// A new node has rules for everything as soon as its agent was told.
// Rule: kube-loadbalancer-controller §9.9, §13 row 9.
func TestRulesForAllAddressesAreThereBeforeTheyAreAcknowledged(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.steer()
	l.apply(s, wanted(many(vip4, 200)...))
	if n := strings.Count(l.node.Run("ip", "rule"), "lookup 101 proto 83"); n != 200 {
		t.Errorf("%d rules", n)
	}
	found, err := s.Found(context.Background())
	if err != nil || len(found) != 200 || found[0].Prefix.Addr() != vip4 || !slices.Equal(found[0].Ports, wanted(vip4).Addresses[0].Ports) {
		t.Errorf("found %d: %v", len(found), err)
	}
}

// Rule: kube-loadbalancer-controller §9.11.
func TestPingsAreAnswered(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		l.client.SetSysctl("ipv4/ping_group_range", "0 0")
		if err := ping(l.client, vip4, unix.AF_INET, unix.IPPROTO_ICMP, 8, 0); err != nil {
			t.Error(err)
		}
		if err := ping(l.client, vip6, unix.AF_INET6, unix.IPPROTO_ICMPV6, 128, 129); err != nil {
			t.Error(err)
		}
	})
}

// ping sends an echo request and waits for the address's answer.
func ping(from *netnstest.Namespace, to netip.Addr, family, protocol int, request, reply byte) error {
	return from.Do(func() error {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM, protocol)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var sa unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
		if to.Is4() {
			sa = &unix.SockaddrInet4{Addr: to.As4()}
		}
		timeout := unix.NsecToTimeval(time.Second.Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
			return err
		}
		if err := unix.Connect(fd, sa); err != nil {
			return err
		}
		if _, err := unix.Write(fd, []byte{request, 0, 0, 0, 0, 0, 0, 1, 'f'}); err != nil {
			return err
		}
		answer := make([]byte, 64)
		n, err := unix.Read(fd, answer)
		if err != nil || n < 8 || answer[0] != reply {
			return fmt.Errorf("ping %s: %d bytes % x: %w", to, n, answer[:8], err)
		}
		return nil
	})
}

// Rule: kube-loadbalancer-controller §9.11.
func TestSegmentsFitTheWayThroughTheSwitch(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		l.node.Run("ip", "link", "set", "eth0", "mtu", "1400")
		for a, want := range map[netip.Addr]int{vip4: 1360, vip6: 1340} {
			if got := segment(t, l.client, a); got > want {
				t.Errorf("%s: segments of %d bytes, want %d", a, got, want)
			}
		}
	})
}

// segment is the maximum segment size that a client learns.
func segment(t *testing.T, from *netnstest.Namespace, to netip.Addr) (size int) {
	t.Helper()
	if err := from.Do(func() error {
		c, err := net.DialTimeout("tcp", netip.AddrPortFrom(to, 80).String(), testkit.Patience)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		return raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				t.Error(err)
				return
			}
			size = int(info.Snd_mss)
		})
	}); err != nil {
		t.Fatal(err)
	}
	return size
}

// Steering itself never changes who the client seems to be.
// Rule: kube-loadbalancer-controller §9.12.
func TestThePodSeesTheClientsAddress(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, _ *steer.Steer, _ steer.Wanted) {
		listener := l.pod.Listen("tcp", ":8081")
		defer listener.Close()
		l.node.Run("nft", "add rule inet proxy prerouting ip daddr 198.51.100.10 tcp dport 81 dnat ip to 10.244.0.2:8081")
		seen := make(chan string, 1)
		go func() {
			if c, err := listener.Accept(); err == nil {
				seen <- c.RemoteAddr().String()
				c.Close()
			}
		}()
		wantWord(t, l.client, vip4, 81, "")
		if got := <-seen; !strings.HasPrefix(got, "203.0.113.2:") {
			t.Errorf("the pod saw %s", got)
		}
	})
}

// Rule: kube-loadbalancer-controller §13 row 16.
func TestDualStackRulesGoPerFamily(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.steer()
	l.apply(s, wanted(vip4, vip6))
	l.apply(s, wanted(vip6))
	if got := l.node.Run("ip", "rule"); strings.Contains(got, "proto 83") {
		t.Errorf("IPv4 rules stay:\n%s", got)
	}
	wantWord(t, l.client, vip6, 80, "pod")
}

func TestPortsFollowTheService(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.steer()
	w := wanted(vip4)
	l.apply(s, w)
	l.node.Run("ip", "address", "add", "198.51.100.10/32", "dev", "lo")
	l.answer(l.node, ":81", "host")
	l.answer(l.node, ":82", "host")
	wantWord(t, l.client, vip4, 81, "host")
	wantRefused(t, l.client, vip4, 82)
	w.Addresses[0].Ports = []desired.Port{{Protocol: 6, Number: 82}}
	l.apply(s, w)
	wantWord(t, l.client, vip4, 82, "host")
	wantRefused(t, l.client, vip4, 81)
}
