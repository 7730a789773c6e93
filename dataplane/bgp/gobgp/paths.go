// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
)

func apiFamily(f bgp.Family) *api.Family {
	if f == bgp.IPv4 {
		return &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
	}
	return &api.Family{Afi: api.Family_AFI_IP6, Safi: api.Family_SAFI_UNICAST}
}

// bgpFamily is one of those that encodePeer tells GoBGP.
func bgpFamily(f *api.Family) bgp.Family {
	if f.GetAfi() == api.Family_AFI_IP6 {
		return bgp.IPv6
	}
	return bgp.IPv4
}

func wireFamily(f bgp.Family) wire.Family {
	if f == bgp.IPv4 {
		return wire.RF_IPv4_UC
	}
	return wire.RF_IPv6_UC
}

// bandwidthOne is the link bandwidth of a weight of 1, in bytes per second.
const bandwidthOne = 125_000

// asTrans stands for numbers that two bytes do not hold (RFC 6793).
const asTrans = 23456

// encodeWeight gives the link bandwidth community of a speaker of an AS.
func encodeWeight(weight, asn uint32) wire.PathAttributeInterface {
	if asn > 0xffff {
		asn = asTrans
	}
	return wire.NewPathAttributeExtendedCommunities([]wire.ExtendedCommunityInterface{
		wire.NewLinkBandwidthExtended(uint16(asn), float32(weight)*bandwidthOne),
	})
}

// encodePath makes a path of the table of a GoBGP of an AS.
func encodePath(p bgp.Path, asn uint32) (*apiutil.Path, error) {
	nlri, err := wire.NewIPAddrPrefix(p.Prefix)
	if err != nil {
		return nil, fmt.Errorf("encode path %s: %w", p, err)
	}
	hop, err := encodeNextHop(p, nlri)
	if err != nil {
		return nil, fmt.Errorf("encode path %s: %w", p, err)
	}
	attrs := []wire.PathAttributeInterface{wire.NewPathAttributeOrigin(p.Origin.Code()), hop}
	if p.MED != 0 { // nearly none have one, and the export policy says 0 for the others
		attrs = append(attrs, wire.NewPathAttributeMultiExitDisc(p.MED))
	}
	if p.LocalPref != 0 {
		attrs = append(attrs, wire.NewPathAttributeLocalPref(p.LocalPref))
	}
	if len(p.Communities) > 0 {
		c := make([]uint32, len(p.Communities))
		for i, v := range p.Communities {
			c[i] = uint32(v)
		}
		attrs = append(attrs, wire.NewPathAttributeCommunities(c))
	}
	if p.Weight != 0 {
		attrs = append(attrs, encodeWeight(p.Weight, asn))
	}
	if large := withTag(p); len(large) > 0 {
		c := make([]*wire.LargeCommunity, len(large))
		for i, v := range large {
			c[i] = wire.NewLargeCommunity(v.Global, v.Local1, v.Local2)
		}
		attrs = append(attrs, wire.NewPathAttributeLargeCommunities(c))
	}
	return &apiutil.Path{
		Family: wireFamily(bgp.FamilyOf(p.Prefix.Addr())), Nlri: nlri, RemoteID: p.PathID, Attrs: attrs, Age: int64(p.PathID), // see preference
	}, nil
}

// encodeNextHop gives the attribute that says where packets go (RFC 4271 §5.1.3, RFC 4760 §3).
func encodeNextHop(p bgp.Path, nlri wire.NLRI) (wire.PathAttributeInterface, error) {
	if p.Prefix.Addr().Is4() {
		return wire.NewPathAttributeNextHop(p.NextHop)
	}
	return wire.NewPathAttributeMpReachNLRI(wire.RF_IPv6_UC, []wire.PathNLRI{{NLRI: nlri}}, p.NextHop)
}

func originOf(code uint8) bgp.Origin {
	switch code {
	case wire.BGP_ORIGIN_ATTR_TYPE_IGP:
		return bgp.OriginIGP
	case wire.BGP_ORIGIN_ATTR_TYPE_EGP:
		return bgp.OriginEGP
	}
	return bgp.OriginIncomplete
}

// decodePath reads a path of GoBGP's table.
func decodePath(prefix netip.Prefix, p *apiutil.Path) bgp.Path {
	out := bgp.Path{Prefix: prefix, PathID: p.RemoteID}
	for _, a := range p.Attrs {
		switch a := a.(type) {
		case *wire.PathAttributeOrigin:
			out.Origin = originOf(a.Value)
		case *wire.PathAttributeNextHop:
			out.NextHop = a.Value.Unmap()
		case *wire.PathAttributeMpReachNLRI:
			out.NextHop = a.Nexthop.Unmap()
		case *wire.PathAttributeMultiExitDisc:
			out.MED = a.Value
		case *wire.PathAttributeLocalPref:
			out.LocalPref = a.Value
		case *wire.PathAttributeCommunities:
			for _, c := range a.Value {
				out.Communities = append(out.Communities, bgp.Community(c))
			}
		case *wire.PathAttributeExtendedCommunities:
			for _, c := range a.Value {
				if b, ok := c.(*wire.LinkBandwidthExtended); ok {
					out.Weight = uint32(b.Bandwidth / bandwidthOne)
				}
			}
		case *wire.PathAttributeLargeCommunities:
			for _, c := range a.Values {
				out.LargeCommunities = append(out.LargeCommunities,
					bgp.LargeCommunity{Global: c.ASN, Local1: c.LocalData1, Local2: c.LocalData2})
			}
		}
	}
	return out
}

// namesAtOnce is how many paths are added before GoBGP's names for them are forgotten.
const namesAtOnce = 4096

// forgetNames has GoBGP forget the names that it gave to paths that were added: it keeps a random one for each, in a map that takes 90
// bytes a path, and nobody here removes a path by its name. To remove all paths of a family forgets the names of all families, and of
// this family there is never any path.
func (s *Speaker) forgetNames() error {
	unused := wire.RF_FS_IPv4_UC
	if err := s.server.DeletePath(apiutil.DeletePathRequest{DeleteAll: true, DeleteFamily: &unused}); err != nil {
		return fmt.Errorf("forget names of paths: %w", err)
	}
	return nil
}

// listPaths reads a table of GoBGP, of the given prefixes or, without any, of all, in order.
func (s *Speaker) listPaths(
	ctx context.Context, table api.TableType, peer string, f bgp.Family, only ...netip.Prefix,
) (out []bgp.Path, err error) {
	err = s.eachPrefix(ctx, table, peer, f, only, func(_ netip.Prefix, paths []bgp.Path) { out = append(out, paths...) })
	slices.SortFunc(out, bgp.Path.Compare)
	return out, err
}

// eachPrefix reads a table of GoBGP, of the given prefixes or, without any, of all, and calls f with one after the
// other, in no order, and its paths, which f must not keep.
func (s *Speaker) eachPrefix(
	ctx context.Context, table api.TableType, peer string, of bgp.Family, only []netip.Prefix, f func(netip.Prefix, []bgp.Path),
) error {
	var paths []bgp.Path
	var failed error
	req := apiutil.ListPathRequest{TableType: table, Name: peer, Family: wireFamily(of)}
	for _, p := range only {
		req.Prefixes = append(req.Prefixes, &apiutil.LookupPrefix{Prefix: p.String()})
	}
	err := s.server.ListPath(req, func(of wire.NLRI, list []*apiutil.Path) {
		if failed != nil || ctx.Err() != nil {
			return
		}
		nlri, ok := of.(*wire.IPAddrPrefix)
		if !ok {
			failed = fmt.Errorf("%s: no prefix", of)
			return
		}
		paths = paths[:0]
		for _, p := range list {
			path := decodePath(nlri.Prefix, p)
			s.untag(&path)
			paths = append(paths, path)
		}
		f(nlri.Prefix, paths)
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
