// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/hostile"
	"fairlead.io/fairlead/internal/heap"
	"fairlead.io/fairlead/internal/testkit"
)

// announcement is an UPDATE of so many paths, each of another prefix, from the number on.
func announcement(t testing.TB, family wire.Family, from, n int) []byte {
	t.Helper()
	var nlri []wire.PathNLRI
	for i := range n {
		a, bits := [16]byte{0x20, 0x01, 0x0d, 0xb8}, 128
		at := a[12:]
		if family == wire.RF_IPv4_UC {
			bits, at = 32, a[:4]
		}
		binary.BigEndian.PutUint32(at, uint32(0x0b000000+from+i))
		of := netip.AddrFrom16(a)
		if family == wire.RF_IPv4_UC {
			of = netip.AddrFrom4([4]byte(at))
		}
		p, err := wire.NewIPAddrPrefix(netip.PrefixFrom(of, bits))
		if err != nil {
			t.Fatal(err)
		}
		nlri = append(nlri, wire.PathNLRI{NLRI: p})
	}
	attrs := []wire.PathAttributeInterface{
		wire.NewPathAttributeOrigin(0),
		wire.NewPathAttributeAsPath([]wire.AsPathParamInterface{wire.NewAs4PathParam(wire.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{hostile.ASN})}),
	}
	var m *wire.BGPMessage
	if family == wire.RF_IPv4_UC {
		hop, err := wire.NewPathAttributeNextHop(addr("192.0.2.254"))
		if err != nil {
			t.Fatal(err)
		}
		m = wire.NewBGPUpdateMessage(nil, append(attrs, hop), nlri)
	} else {
		reach, err := wire.NewPathAttributeMpReachNLRI(family, nlri, addr("2001:db8::254"))
		if err != nil {
			t.Fatal(err)
		}
		m = wire.NewBGPUpdateMessage(nil, append(attrs, reach), nil)
	}
	b, err := m.Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A neighbour that sends path after path has none of them kept, in one UPDATE or many, and its session goes on.
func TestNoPathOfANeighbourIsKept(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	full := hostile.Listen(t, addr("127.0.0.1"))
	d := bgp.Desired{Peers: []bgp.Peer{full.Peer()}}
	if err := s.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	session, err := full.Session(hostile.Established)
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, per := range []int{1, 150} {
		for range 100 {
			for _, f := range []wire.Family{wire.RF_IPv4_UC, wire.RF_IPv6_UC} {
				if err := session.Send(announcement(t, f, sent, per)); err != nil {
					t.Fatal(err)
				}
				sent += per
			}
		}
	}
	peer := full.Peer().Address
	testkit.Until(t, "all to be counted", func() bool {
		st, err := s.Peers(t.Context())
		return err == nil && st[0].Refused == sent
	})
	peers, err := s.listPeers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range peers[peer].GetAfiSafis() {
		if n := f.GetState().GetReceived(); n > 1 {
			t.Errorf("of %v %d paths are kept", f.GetState().GetFamily(), n)
		}
	}
	d.Paths = bgp.NewPaths(path(vip, hop1))
	apply(t, s, d)
	for kind := byte(0); kind != hostile.TypeUpdate; {
		if kind, err = session.Receive(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkPathsOfANeighbour tells what a path that a neighbour sends takes of processor time, and of memory as long as the session lasts.
func BenchmarkPathsOfANeighbour(b *testing.B) {
	s := dialler(b, 0)
	full := hostile.Listen(b, addr("127.0.0.1"))
	if err := s.Apply(b.Context(), bgp.Desired{Peers: []bgp.Peer{full.Peer()}}); err != nil {
		b.Fatal(err)
	}
	session, err := full.Session(hostile.Established)
	if err != nil {
		b.Fatal(err)
	}
	const per = 700
	before := heap.InUse()
	for sent := 0; b.Loop(); sent += per {
		if err := session.Send(announcement(b, wire.RF_IPv4_UC, sent, per)); err != nil {
			b.Fatal(err)
		}
	}
	testkit.Until(b, "all to be counted", func() bool {
		st, err := s.Peers(b.Context())
		return err == nil && st[0].Refused == b.N*per
	})
	b.ReportMetric((float64(heap.InUse())-float64(before))/float64(b.N*per), "B-held/path")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*per), "ns/path")
}
