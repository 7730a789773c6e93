// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	api "github.com/osrg/gobgp/v3/api"
	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
)

func apiFamily(f bgp.Family) *api.Family {
	if f == bgp.IPv4 {
		return &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
	}
	return &api.Family{Afi: api.Family_AFI_IP6, Safi: api.Family_SAFI_UNICAST}
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

// encodePath makes a path of the table of a GoBGP of an AS. Attributes go as bytes, which is half the work of messages in messages.
func encodePath(p bgp.Path, asn uint32) (*api.Path, error) {
	family := bgp.FamilyOf(p.Prefix.Addr())
	nlri := encodePrefix(p.Prefix)
	attrs := []wire.PathAttributeInterface{wire.NewPathAttributeOrigin(originCode(p.Origin))}
	if p.MED != 0 { // nearly none have one, and the export policy says 0 for the others
		attrs = append(attrs, wire.NewPathAttributeMultiExitDisc(p.MED))
	}
	if family == bgp.IPv4 {
		attrs = append(attrs, wire.NewPathAttributeNextHop(p.NextHop.String()))
	} else {
		attrs = append(attrs, wire.NewPathAttributeMpReachNLRI(p.NextHop.String(), []wire.AddrPrefixInterface{nlri}))
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
			c[i] = &wire.LargeCommunity{ASN: v.Global, LocalData1: v.Local1, LocalData2: v.Local2}
		}
		attrs = append(attrs, wire.NewPathAttributeLargeCommunities(c))
	}
	out := &api.Path{Family: apiFamily(family), Identifier: p.PathID}
	var err error
	if out.NlriBinary, err = nlri.Serialize(); err != nil {
		return nil, fmt.Errorf("encode path %s: %w", p, err)
	}
	for _, a := range attrs {
		b, err := a.Serialize()
		if err != nil {
			return nil, fmt.Errorf("encode path %s: %w", p, err)
		}
		out.PattrsBinary = append(out.PattrsBinary, b)
	}
	return out, nil
}

func encodePrefix(p netip.Prefix) wire.AddrPrefixInterface {
	if p.Addr().Is4() {
		return wire.NewIPAddrPrefix(uint8(p.Bits()), p.Addr().String())
	}
	return wire.NewIPv6AddrPrefix(uint8(p.Bits()), p.Addr().String())
}

func originCode(o bgp.Origin) uint8 {
	switch o {
	case bgp.OriginIGP:
		return wire.BGP_ORIGIN_ATTR_TYPE_IGP
	case bgp.OriginEGP:
		return wire.BGP_ORIGIN_ATTR_TYPE_EGP
	}
	return wire.BGP_ORIGIN_ATTR_TYPE_INCOMPLETE
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

// decodePath reads a path listed with attributes as bytes.
func decodePath(prefix netip.Prefix, p *api.Path) (bgp.Path, error) {
	out := bgp.Path{Prefix: prefix, PathID: p.Identifier}
	for _, b := range p.PattrsBinary {
		a, err := wire.GetPathAttribute(b)
		if err == nil {
			err = a.DecodeFromBytes(b)
		}
		if err != nil {
			return bgp.Path{}, fmt.Errorf("decode path of %s: %w", prefix, err)
		}
		switch a := a.(type) {
		case *wire.PathAttributeOrigin:
			out.Origin = originOf(a.Value)
		case *wire.PathAttributeNextHop:
			out.NextHop = addrOf(a.Value)
		case *wire.PathAttributeMpReachNLRI:
			out.NextHop = addrOf(a.Nexthop)
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
	return out, nil
}

func addrOf(ip []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// namesAtOnce is how many paths are added before GoBGP's names for them are forgotten.
const namesAtOnce = 4096

// forgetNames has GoBGP forget the names that it gave to paths that were added: it keeps a random one for each, in a map that takes 90
// bytes a path, and nobody here removes a path by its name. To remove all paths of a family forgets the names of all families, and of
// this family there is never any path.
func (s *Speaker) forgetNames(ctx context.Context) error {
	unused := &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_FLOW_SPEC_UNICAST}
	if err := s.server.DeletePath(ctx, &api.DeletePathRequest{TableType: api.TableType_GLOBAL, Family: unused}); err != nil {
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
	req := &api.ListPathRequest{TableType: table, Name: peer, Family: apiFamily(of), EnableOnlyBinary: true}
	for _, p := range only {
		req.Prefixes = append(req.Prefixes, &api.TableLookupPrefix{Prefix: p.String()})
	}
	err := s.server.ListPath(ctx, req, func(d *api.Destination) {
		prefix, err := netip.ParsePrefix(d.Prefix)
		if err != nil {
			failed = fmt.Errorf("prefix %q: %w", d.Prefix, err)
			return
		}
		paths = paths[:0]
		for _, p := range d.Paths {
			path, err := decodePath(prefix, p)
			s.untag(&path)
			if err != nil {
				failed = err
				return
			}
			paths = append(paths, path)
		}
		f(prefix, paths)
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = ctx.Err() // GoBGP stops listing in the middle, without an error
	}
	return err
}
