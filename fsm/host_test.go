// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// A token for a host outside takes the host in, and is no good for the agent of a node that is called the same; a host that was taken
// out says hello in vain, also with a token that was offered before.
func TestHostsAreTakenInByTokensAndTakenOutForGood(t *testing.T) {
	s, first, second := fsm.New(), fsm.EnrolmentID(strings.Repeat("ab", 32)), fsm.EnrolmentID(strings.Repeat("cd", 32))
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 2}, &fsm.PutNode{ID: "edge1"},
		&fsm.PutEnrolment{ID: first, Node: "edge1", Outside: true, TTL: time.Hour}, &fsm.PutEnrolment{ID: second, Node: "edge1", Outside: true, TTL: time.Hour})
	hello := &fsm.RegisterHost{ID: "edge1", Boot: "b1", Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.7")}}
	for i, step := range []struct {
		command fsm.Command
		want    fsm.Reject
	}{
		{hello, fsm.RejectNotFound},
		{&fsm.UseEnrolment{ID: first, Node: "edge1"}, fsm.RejectInvalid},
		{&fsm.UseEnrolment{ID: first, Node: "edge1", Outside: true}, fsm.Accepted},
		{&fsm.ReportHosts{Marks: []fsm.HostMark{{Host: "edge1", Upto: fsm.Revision{Epoch: 1, Index: 2}}}}, fsm.RejectStaleBoot},
		{hello, fsm.Accepted},
		{&fsm.ReportHosts{Marks: []fsm.HostMark{{Host: "edge1", Boot: "b1", Upto: fsm.Revision{Epoch: 1, Index: 2}}}}, fsm.Accepted},
		{&fsm.RemoveHost{ID: "edge1"}, fsm.Accepted},
		{hello, fsm.RejectNotFound},
		{&fsm.UseEnrolment{ID: second, Node: "edge1", Outside: true}, fsm.RejectNotFound},
		{&fsm.RemoveHost{ID: "edge1"}, fsm.RejectNotFound},
		{&fsm.RegisterHost{ID: "edge1", Admit: true}, fsm.Accepted},
		{hello, fsm.Accepted},
	} {
		if have := outcome(t, s, step.command); have != step.want {
			t.Fatalf("step %d: %s, want %s", i, have, step.want)
		}
	}
	if n, ok := fsm.Get[*fsm.Node](s.Read(), fsm.TableNodes, "edge1"); !ok || n.Boot != "" || !n.Acknowledged.IsZero() {
		t.Errorf("the node of that name became %+v", n)
	}
}

// Members of format 1 would stop at the table.
func TestNoHostIsTakenInBeforeFormatTwo(t *testing.T) {
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 1})
	if have := outcome(t, s, &fsm.RegisterHost{ID: "edge1", Admit: true}); have != fsm.RejectFormat {
		t.Fatal(have)
	}
}

// A group has room for so many hosts, and each for so many addresses.
func TestHostsAreBounded(t *testing.T) {
	s := formed(t)
	var all []fsm.Proposal
	for i := range 10_000 {
		all = append(all, fsm.Proposal{Command: &fsm.RegisterHost{ID: fsm.HostID(fmt.Sprint("edge", i)), Admit: true}})
	}
	for len(all) > 0 {
		batch := all[:min(len(all), 500)]
		all = all[len(batch):]
		fsmtest.Commit(t, s, batch...)
	}
	if have := outcome(t, s, &fsm.RegisterHost{ID: "one-more", Admit: true}); have != fsm.RejectInUse {
		t.Errorf("one more is %s", have)
	}
	if have := outcome(t, s, &fsm.RegisterHost{ID: "edge7", Boot: "b1", Addresses: make([]netip.Addr, 17)}); have != fsm.RejectInvalid {
		t.Errorf("many addresses are %s", have)
	}
	tell(t, s, &fsm.RemoveHost{ID: "edge7"}, &fsm.RegisterHost{ID: "one-more", Admit: true})
}

// Balancing §13.1: a tunnel of a host outside waits for its own host, and not for others outside, which are not told of it.
func TestTunnelsOfHostsOutsideWaitForNoOtherHost(t *testing.T) {
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 2})
	hello := func(id fsm.HostID, at string) fsm.Command {
		return &fsm.RegisterHost{ID: id, Boot: "b1", Addresses: []netip.Addr{netip.MustParseAddr(at)}, Admit: true, Tunnels: true}
	}
	tell(t, s, hello("edge1", "198.51.100.7"), hello("edge2", "198.51.100.8"),
		&fsm.SetTunnels{Settings: fsm.TunnelSettings{Range4: netip.MustParsePrefix("10.250.0.0/24"), Port: 7446, VNI: 7446}},
		&fsm.PutTunnel{Host: fsm.HostTunnel("edge1"), Underlay: netip.MustParseAddr("198.51.100.7")}, &fsm.ReleaseTunnel{Host: fsm.HostTunnel("edge1")})
	free := &fsm.FreeTunnel{Host: fsm.HostTunnel("edge1")}
	if have := outcome(t, s, free); have != fsm.RejectInUse {
		t.Errorf("before its host said so it is %s", have)
	}
	tell(t, s, &fsm.ReportHosts{Marks: []fsm.HostMark{{Host: "edge1", Boot: "b1", Upto: s.Read().Revision()}}})
	if have := outcome(t, s, free); have != fsm.Accepted {
		t.Errorf("once it did it is %s", have)
	}
}
