// SPDX-License-Identifier: Apache-2.0

package share_test

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/share"
	"fairlead.io/fairlead/internal/testkit"
)

var addresses = []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("2001:db8::1")}

func drawSeconds(t *rapid.T, name string) time.Duration {
	return time.Duration(rapid.Uint16().Draw(t, name)) * time.Second
}

func drawPeer(t *rapid.T) bgp.Peer {
	p := bgp.Peer{
		Name: rapid.SampledFrom([]string{"tor", "spine"}).Draw(t, "name"), Address: rapid.SampledFrom(addresses).Draw(t, "peer"),
		Port: rapid.Uint16().Draw(t, "port"), RemoteASN: rapid.Uint32().Draw(t, "asn"), LocalASN: rapid.Uint32().Draw(t, "own asn"),
		Passive: rapid.Bool().Draw(t, "passive"), EBGPMultihop: rapid.Uint8().Draw(t, "ttl"), TTLSecurity: rapid.Uint8().Draw(t, "hops"),
		SendMax: rapid.Uint8().Draw(t, "send max"), HoldTime: drawSeconds(t, "hold"), Keepalive: drawSeconds(t, "keepalive"),
		ConnectRetry: drawSeconds(t, "retry"),
		Restart: bgp.GracefulRestart{
			Mode:        rapid.SampledFrom([]bgp.RestartMode{bgp.RestartLongLived, bgp.RestartPlain, bgp.RestartNone}).Draw(t, "mode"),
			RestartTime: drawSeconds(t, "restart"), StaleTime: drawSeconds(t, "stale"), Notification: rapid.Bool().Draw(t, "keep"),
		},
	}
	for _, f := range []bgp.Family{bgp.IPv4, bgp.IPv6} {
		if rapid.Bool().Draw(t, f.String()) {
			p.Families = append(p.Families, f)
		}
	}
	return p
}

func drawTerms(t *rapid.T) bgp.Terms {
	out := bgp.Terms{MED: rapid.SampledFrom([]uint32{0, 7}).Draw(t, "med"), LocalPref: rapid.SampledFrom([]uint32{0, 200}).Draw(t, "local pref")}
	for range rapid.IntRange(0, 2).Draw(t, "communities") {
		out.Communities = append(out.Communities, bgp.Community(rapid.Uint32().Draw(t, "community")))
	}
	for range rapid.IntRange(0, 1).Draw(t, "large") {
		out.LargeCommunities = append(out.LargeCommunities, bgp.LargeCommunity{Global: 65000, Local1: rapid.Uint32().Draw(t, "local1"), Local2: 2})
	}
	return out
}

func drawPath(t *rapid.T, a netip.Addr) bgp.Path {
	others := drawTerms(t)
	p := bgp.Path{
		Prefix: netip.PrefixFrom(a, a.BitLen()), NextHop: a, Withheld: rapid.Bool().Draw(t, "withheld"), Weight: rapid.Uint32().Draw(t, "weight"),
		MED: others.MED, LocalPref: others.LocalPref, Communities: others.Communities, LargeCommunities: others.LargeCommunities,
	}
	if rapid.Bool().Draw(t, "terms") {
		terms := drawTerms(t)
		terms.Peer = "tor"
		p.Terms = append(p.Terms, terms)
	}
	return p
}

func drawShare(t *rapid.T) share.Share {
	s := share.Share{Revision: bgp.Revision{Epoch: 1, Index: rapid.Uint64Range(1, 9).Draw(t, "index")}, Keep: rapid.Bool().Draw(t, "keep")}
	for _, a := range addresses {
		switch rapid.IntRange(0, 2).Draw(t, "of "+a.String()) {
		case 0:
			s.Paths = append(s.Paths, drawPath(t, a))
		case 1:
			s.Gone = append(s.Gone, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "aggregates") {
		a := rapid.SampledFrom(addresses).Draw(t, "of")
		s.Aggregates = append(s.Aggregates, netip.PrefixFrom(a, rapid.IntRange(20, a.BitLen()).Draw(t, "bits")).Masked())
	}
	for range rapid.IntRange(0, 2).Draw(t, "summaries") {
		a := rapid.SampledFrom(addresses).Draw(t, "of")
		p := drawPath(t, a)
		p.Prefix = netip.PrefixFrom(a, rapid.IntRange(20, a.BitLen()-1).Draw(t, "bits")).Masked()
		s.Summaries = append(s.Summaries, p)
	}
	for range rapid.IntRange(0, 2).Draw(t, "peers") {
		s.Peers = append(s.Peers, drawPeer(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "signed") {
		s.Signed = append(s.Signed, share.SignedPeer{Peer: drawPeer(t), PasswordFrom: rapid.SampledFrom([]string{"Secret/a/b", "BGPPeer/c"}).Draw(t, "from")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "unnumbered") {
		p := share.UnnumberedPeer{Peer: drawPeer(t), Interface: rapid.SampledFrom([]string{"eth1", "eth2"}).Draw(t, "interface")}
		p.Address = netip.Addr{}
		s.Unnumbered = append(s.Unnumbered, p)
	}
	return s
}

func TestPropertySharesComeOutAsTheyWentIn(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		want := drawShare(t)
		data, err := proto.Marshal(want.Message())
		if err != nil {
			t.Fatal(err)
		}
		var m fairleadv1.AnnouncementsResponse
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		have, err := share.Of(&m)
		if err != nil || !reflect.DeepEqual(have, want) {
			t.Fatalf("%v: have %+v\nwant %+v", err, have, want)
		}
	})
}

// Who cannot sign, such as an agent that knows nothing of that, is not told of signed peers among the others; and whoever lacks a
// password, or has an empty one, has no such peer.
func TestPropertySignedPeersAreOnlyThereWithTheirPasswords(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := drawShare(t)
		if n := len(s.Message().GetNeighbours()); n != len(s.Peers) {
			t.Fatalf("%d neighbours for %d peers without a password", n, len(s.Peers))
		}
		passwords := map[string]bgp.Secret{}
		for _, from := range []string{"Secret/a/b", "BGPPeer/c"} {
			if rapid.Bool().Draw(t, "there is "+from) {
				passwords[from] = bgp.Secret(rapid.SampledFrom([]string{"", "s3cret"}).Draw(t, from))
			}
		}
		peers, missing := s.Sign(func(_ bgp.Peer, from string) (bgp.Secret, bool) {
			found, ok := passwords[from]
			return found, ok
		})
		var want []bgp.Peer
		var without []share.SignedPeer
		want = append(want, s.Peers...)
		for _, p := range s.Signed {
			if passwords[p.PasswordFrom] == "" {
				without = append(without, p)
				continue
			}
			p.Password = passwords[p.PasswordFrom]
			want = append(want, p.Peer)
		}
		if !slices.EqualFunc(peers, want, bgp.Peer.Equal) || !reflect.DeepEqual(missing, without) {
			t.Fatalf("peers %v without %v, want %v without %v", peers, missing, want, without)
		}
	})
}

// In quarantine an address that was announced stays until the record says that it goes; otherwise the share is all there is.
func TestPropertyOnlyQuarantineKeepsWhatTheRecordLacks(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		before, now := drawShare(t).Routes(bgp.Routes{}), drawShare(t)
		have := now.Routes(before)
		of := func(paths []bgp.Path, p netip.Prefix) (bgp.Path, bool) {
			i := slices.IndexFunc(paths, func(q bgp.Path) bool { return q.Prefix == p })
			if i < 0 {
				return bgp.Path{}, false
			}
			return paths[i], true
		}
		for _, a := range addresses {
			p := netip.PrefixFrom(a, a.BitLen())
			want, ok := of(now.Paths, p)
			if !ok && now.Keep && !slices.Contains(now.Gone, p) {
				want, ok = of(slices.Collect(before.Paths.All()), p)
			}
			if got, announced := of(slices.Collect(have.Paths.All()), p); announced != ok || !got.Equal(want) {
				t.Errorf("%s: announced %t %+v, want %t %+v", p, announced, got, ok, want)
			}
		}
		if have.Revision != now.Revision {
			t.Errorf("revision %s, paths %v", have.Revision, have.Paths)
		}
	})
}

// Addresses that an aggregate stands for are kept one by one in quarantine: the record may say of one that it goes.
func TestQuarantineKeepsTheAddressesOfAnAggregate(t *testing.T) {
	var paths []bgp.Path
	for _, text := range []string{"203.0.113.4/32", "203.0.113.5/32", "203.0.113.6/32", "203.0.113.7/32"} {
		paths = append(paths, bgp.Path{Prefix: netip.MustParsePrefix(text), NextHop: netip.MustParseAddr("192.0.2.1")})
	}
	before := share.Share{Paths: paths, Aggregates: []netip.Prefix{netip.MustParsePrefix("203.0.113.4/30")}}.Routes(bgp.Routes{})
	if before.Paths.Len() != 1 || !before.Paths.Has(netip.MustParsePrefix("203.0.113.4/30")) {
		t.Fatalf("announced %v", before.Paths)
	}
	now := share.Share{Keep: true, Paths: paths[:1], Gone: []netip.Prefix{paths[2].Prefix}}.Routes(before)
	want := []bgp.Path{paths[0], paths[1], paths[3]}
	if !now.Paths.Equal(bgp.NewPaths(want...)) {
		t.Errorf("announced %v, want %v", now.Paths, want)
	}
}

func TestWhatIsNoAddressIsRefused(t *testing.T) {
	for name, m := range map[string]*fairleadv1.AnnouncementsResponse{
		"path":      {Paths: []*fairleadv1.AnnouncedPath{{Address: []byte{1}, NextHop: []byte{1, 2, 3, 4}}}},
		"next hop":  {Paths: []*fairleadv1.AnnouncedPath{{Address: []byte{1, 2, 3, 4}}}},
		"neighbour": {Neighbours: []*fairleadv1.Neighbour{{Name: "tor"}}},
		"signed":    {SignedNeighbours: []*fairleadv1.SignedNeighbour{{Neighbour: &fairleadv1.Neighbour{Address: []byte{1, 2, 3, 4}}}}},
		"port":      {Neighbours: []*fairleadv1.Neighbour{{Address: []byte{1, 2, 3, 4}, Port: 70_000}}},
		"ttl":       {Neighbours: []*fairleadv1.Neighbour{{Address: []byte{1, 2, 3, 4}, MultihopTtl: 256}}},
		"gone":      {Gone: [][]byte{{1}}},
		"summary":   {Summaries: []*fairleadv1.AnnouncedPath{{Address: []byte{1, 2, 3, 4}, NextHop: []byte{1, 2, 3, 4}}}},
		"aggregate": {Aggregates: []*fairleadv1.Aggregate{{Address: []byte{1, 2, 3, 4}, Bits: 33}}},
	} {
		if _, err := share.Of(m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
