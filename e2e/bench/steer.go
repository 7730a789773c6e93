// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/netnstest"
)

// Sizes of steerPackets.
const (
	manyAddresses = 10_000
	steerFlows    = 64
	steerRounds   = 100
	steerPasses   = 6 // over all flows, in a turn: about 2 ms
	steerTries    = 100
)

// steerPackets compares how many packets a second get through a node that steers many addresses with one that steers a
// single one: client, node, translation, pod, in network namespaces. The kernel does all that within the client's calls.
// Both run in turns with as many flows, and a turn in which the scheduler let others run is made again; a sample is the
// ratio of two turns. What one ip rule for each address would give is in detail.
func steerPackets(t *bench) figures {
	client := netnstest.New(t, "client")
	one := newSteered(t, client, 1, 1, 0)
	all := newSteered(t, client, 2, manyAddresses, 0)
	t.progressf("the same with a rule for each address")
	rules := newSteered(t, client, 3, manyAddresses, 2*manyAddresses)
	f := figures{samples: make([]float64, 0, steerRounds)}
	single, marked := make([]float64, 0, steerRounds), make([]float64, 0, steerRounds)
	for range steerRounds {
		a, b := one.turn(t), all.turn(t)
		single, marked = append(single, a), append(marked, b)
		f.samples = append(f.samples, b/a)
	}
	each := make([]float64, 0, 5)
	for range cap(each) {
		slow, _ := rules.rate(t, 1) // takes too long not to be interrupted
		each = append(each, slow/one.turn(t))
	}
	f.detail = map[string]any{
		"addresses": manyAddresses, "flows": steerFlows,
		"packets_per_s_1": middle(single), "packets_per_s_10000": middle(marked), "ratio_with_a_rule_each": middle(each),
		"apply_10000_ms": milliseconds(all.applied), "apply_one_more_ms": milliseconds(all.more(t)),
	}
	return f
}

func middle(samples []float64) float64 { return quantile(slices.Sorted(slices.Values(samples)), 0.5) }

// steered is a node, its pod, and flows to its service addresses.
type steered struct {
	node, pod *netnstest.Namespace
	steer     *steer.Steer
	addresses []netip.Addr
	flows     []net.Conn
	applied   time.Duration // what it took to steer all
	counted   float64       // packets that reached the pod so far
}

// newSteered makes the node with a number, joins it to the client, and steers addresses, with rules up to a number.
func newSteered(t *bench, client *netnstest.Namespace, number, addresses, rulesMax int) *steered {
	s := &steered{node: netnstest.New(t, "node"), pod: netnstest.New(t, "pod")}
	net4 := func(of string, host int) string { return fmt.Sprintf("10.%d.%s.%d", number, of, host) }
	netnstest.Join(
		netnstest.Link{In: client, Name: fmt.Sprintf("eth%d", number), Addresses: []string{net4("255", 2) + "/24"}},
		netnstest.Link{In: s.node, Name: "eth0", Addresses: []string{net4("255", 1) + "/24"}},
	)
	netnstest.Join(
		netnstest.Link{In: s.node, Name: "cni0", Addresses: []string{net4("254", 1) + "/24"}},
		netnstest.Link{In: s.pod, Name: "eth0", Addresses: []string{net4("254", 2) + "/24"}},
	)
	client.Run("ip", "route", "add", net4("0", 0)+"/17", "via", net4("255", 1))
	s.node.SetSysctl("ipv4/ip_forward", "1")
	s.node.Feed(fmt.Sprintf(`table ip proxy { chain prerouting {
			type nat hook prerouting priority dstnat
			ip daddr %s/17 udp dport 80 dnat to %s:8080
		}
		}`, net4("0", 0), net4("254", 2)), "nft", "-f", "-")
	s.pod.Feed(`table ip sink { chain prerouting {
			type filter hook prerouting priority raw
			udp dport 8080 counter drop
		}
		}`, "nft", "-f", "-")
	for a := netip.MustParseAddr(net4("0", 1)); len(s.addresses) < addresses; a = a.Next() {
		s.addresses = append(s.addresses, a)
	}
	var err error
	if s.steer, err = steer.New(steer.Options{
		Folder: t.TempDir(), Namespace: s.node.FD(), Interfaces: []string{"eth*"}, RulesMax: rulesMax, Log: slog.New(slog.DiscardHandler),
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.steer.Close)
	s.applied = s.apply(t, net4("255", 2))
	s.open(t, client)
	return s
}

// apply has the addresses steered.
func (s *steered) apply(t *bench, gateway string) time.Duration {
	want := steeredState(t, s.addresses, netip.MustParseAddr(gateway))
	begin := time.Now()
	if failed, err := s.steer.Apply(context.Background(), want); err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	return time.Since(begin)
}

// more is what one more address takes.
func (s *steered) more(t *bench) time.Duration {
	s.addresses = append(s.addresses, s.addresses[len(s.addresses)-1].Next())
	return s.apply(t, "10.2.255.2")
}

// open makes the flows, spread evenly over the addresses, and waits until packets arrive.
func (s *steered) open(t *bench, client *netnstest.Namespace) {
	if err := client.Do(func() error {
		for i := range steerFlows {
			to := s.addresses[i*len(s.addresses)/steerFlows]
			c, err := net.Dial("udp", netip.AddrPortFrom(to, 80).String())
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			s.flows = append(s.flows, c)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); s.counted == 0; s.counted = s.arrived(t) {
		if time.Now().After(deadline) {
			t.Fatal("no packet reached the pod")
		}
		s.send(t, 1)
	}
}

// send sends packets over all flows in turn.
func (s *steered) send(t *bench, passes int) {
	payload := make([]byte, 64)
	for range passes {
		for _, c := range s.flows {
			if _, err := c.Write(payload); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// arrived counts the packets that reached the pod.
func (s *steered) arrived(t *bench) float64 {
	_, rest, _ := strings.Cut(s.pod.Run("nft", "list", "table", "ip", "sink"), "counter packets ")
	n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// turn gives the packets a second of one turn.
func (s *steered) turn(t *bench) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range steerTries {
		if rate, alone := s.rate(t, steerPasses); alone {
			return rate
		}
	}
	t.Fatal("the machine is too busy: others ran in each turn")
	return 0
}

// rate gives the packets a second of some passes, and whether nobody else ran on the core meanwhile.
func (s *steered) rate(t *bench, passes int) (rate float64, alone bool) {
	before, others, begin := s.counted, interruptions(t), time.Now()
	s.send(t, passes)
	took := time.Since(begin)
	alone = interruptions(t) == others
	s.counted = s.arrived(t)
	return (s.counted - before) / took.Seconds(), alone
}

// interruptions is how often the scheduler took this thread off a core.
func interruptions(t *bench) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return u.Nivcsw
}

// steeredState is the state of a node that steers addresses.
func steeredState(t *bench, addresses []netip.Addr, gateway netip.Addr) desired.State {
	var m desiredtest.Told
	for _, a := range addresses {
		m.Address(a, desired.Port{Protocol: 17, Number: 80})
	}
	return m.State(t, desired.NodeMessage("bench", &desired.Config{Switches: []netip.Addr{gateway}}, nil))
}
