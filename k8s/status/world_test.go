// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// book is a record that tests write.
type book struct {
	*fsm.State
	run string // of the member
}

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newBook(t fataler) *book {
	b := &book{fsm.New(), "r1"}
	b.do(t, &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat},
		&fsm.ReportMember{Server: "m1", Name: "m1", Run: "r1", Format: fsm.NewestFormat},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "switch", Address: netip.MustParseAddr("192.0.2.254"), ASN: 65001, LocalASN: 65000, IPv4: true}})
	for _, n := range []string{"n1", "n2", "n3"} {
		b.do(t, &fsm.PutNode{ID: fsm.NodeID(n), UID: n, Addresses: []netip.Addr{nodeAddress(n)}, Eligible: true},
			&fsm.RegisterBoot{Node: fsm.NodeID(n), Boot: "boot1"})
	}
	return b
}

func nodeAddress(n string) netip.Addr { return netip.MustParseAddr("192.0.2." + n[1:]) }

// try commits commands; those that are refused change nothing.
func (b *book) try(t fataler, commands ...fsm.Command) (refused error) {
	t.Helper()
	for _, c := range commands {
		if err := fsmtest.Try(t, b.State, c).Err(); err != nil {
			refused = fmt.Errorf("%T: %w", c, err)
		}
	}
	return refused
}

func (b *book) do(t fataler, commands ...fsm.Command) {
	t.Helper()
	if err := b.try(t, commands...); err != nil {
		t.Fatal(err)
	}
}

// now is the revision of the newest entry.
func (b *book) now() fsm.Revision { return b.Read().Revision() }

// service adds a Service with the port 80.
func (b *book) service(t fataler, id string, change ...func(*fsm.Service)) {
	t.Helper()
	s := fsm.Service{ID: fsm.ServiceID(id), UID: "uid-" + id, Frontends: []fsm.Frontend{{Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}}}
	for _, c := range change {
		c(&s)
	}
	b.do(t, &fsm.PutService{Service: s})
}

func (b *book) allocate(t fataler, id, address string) {
	t.Helper()
	b.do(t, &fsm.Allocate{Address: netip.MustParseAddr(address), Service: fsm.ServiceID(id), Pool: "public", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}})
}

func (b *book) route(t fataler, address string, nodes ...string) {
	t.Helper()
	c := &fsm.SetRoute{Prefix: fsm.HostPrefix(netip.MustParseAddr(address))}
	for _, n := range nodes {
		c.Hops = append(c.Hops, fsm.HopSpec{Node: fsm.NodeID(n), Address: nodeAddress(n)})
	}
	b.do(t, c)
}

// acknowledge has nodes carry out all that is committed.
func (b *book) acknowledge(t fataler, nodes ...string) {
	t.Helper()
	upto := b.now()
	for _, n := range nodes {
		b.do(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: fsm.NodeID(n), Boot: "boot1", Upto: upto}}})
	}
}

// announce has the member announce all that is committed.
func (b *book) announce(t fataler) {
	t.Helper()
	b.do(t, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1", Run: b.run, Upto: b.now()}}})
}

// sessions has the member say which of its sessions are open.
func (b *book) sessions(t fataler, open ...fsm.Reach) {
	t.Helper()
	b.do(t, &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m1", Run: b.run, Open: open}}})
}

// restart has the member forget what it announced.
func (b *book) restart(t fataler) {
	t.Helper()
	b.run += "+"
	b.do(t, &fsm.ReportMember{Server: "m1", Name: "m1", Run: b.run, Format: fsm.NewestFormat})
}

// serve does all that leads to an address being announced.
func (b *book) serve(t fataler, id, address string, nodes ...string) {
	t.Helper()
	b.allocate(t, id, address)
	b.route(t, address, nodes...)
	b.acknowledge(t, nodes...)
	b.announce(t)
}

func each(addresses ...string) (out []netip.Addr) {
	for _, a := range addresses {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func requested(addresses ...string) func(*fsm.Service) {
	return func(s *fsm.Service) {
		rare := s.Besides()
		rare.Requested = append(rare.Requested, each(addresses...)...)
		s.SetRare(rare)
	}
}

func external(addresses ...string) func(*fsm.Service) {
	return func(s *fsm.Service) {
		rare := s.Besides()
		rare.External = append(rare.External, each(addresses...)...)
		s.SetRare(rare)
	}
}

func pending(code, text string) func(*fsm.Service) {
	return func(s *fsm.Service) { s.Pending = fsm.Pending{Code: code, Text: text} }
}

func uid(of types.UID) func(*fsm.Service) {
	return func(s *fsm.Service) { s.UID = string(of) }
}
