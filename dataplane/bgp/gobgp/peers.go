// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// encodePeer makes a neighbour of GoBGP out of a normal peer.
//
// It is marked as restarting always. The mark is the forwarding bit of graceful restart, and nodes do forward while a
// speaker is away, whether its process or its connection was lost; without the bit the switch drops our paths when the
// session returns, before it has the new ones.
func encodePeer(p bgp.Peer) *api.Peer {
	r := p.Restart
	out := &api.Peer{
		Conf: &api.PeerConf{
			NeighborAddress: p.Address.String(), PeerAsn: p.RemoteASN, LocalAsn: p.LocalASN,
			AuthPassword: string(p.Password), Description: localMark(p.LocalAddress),
		},
		Timers: &api.Timers{Config: &api.TimersConfig{
			ConnectRetry: seconds(p.ConnectRetry), HoldTime: seconds(p.HoldTime),
			KeepaliveInterval: seconds(p.Keepalive), IdleHoldTimeAfterReset: 1,
		}},
		Transport:    &api.Transport{RemotePort: uint32(p.Port), PassiveMode: p.Passive},
		EbgpMultihop: &api.EbgpMultihop{Enabled: p.EBGPMultihop > 0, MultihopTtl: uint32(p.EBGPMultihop)},
		TtlSecurity:  &api.TtlSecurity{Enabled: p.TTLSecurity > 0, TtlMin: leastTTL(p.TTLSecurity)},
		GracefulRestart: &api.GracefulRestart{
			Enabled: r.Mode != bgp.RestartNone, RestartTime: uint32(seconds(r.RestartTime)),
			DeferralTime: uint32(seconds(r.Deferral)), NotificationEnabled: r.Notification,
			LonglivedEnabled: r.Mode == bgp.RestartLongLived, LocalRestarting: r.Mode != bgp.RestartNone,
		},
	}
	switch {
	case p.LocalAddress.IsValid():
		out.Transport.LocalAddress = p.LocalAddress.String()
	case p.Unnumbered():
		// GoBGP would look the interface's address up, with a zone, which it then cannot read as the next hop that we are.
		out.Transport.LocalAddress = netip.IPv6Unspecified().String()
	}
	for _, f := range p.Families {
		out.AfiSafis = append(out.AfiSafis, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: apiFamily(f), Enabled: true},
			AddPaths:          &api.AddPaths{Config: &api.AddPathsConfig{SendMax: sendMax(p)}},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: r.Mode != bgp.RestartNone}},
			LongLivedGracefulRestart: &api.LongLivedGracefulRestart{Config: &api.LongLivedGracefulRestartConfig{
				Enabled: r.Mode == bgp.RestartLongLived, RestartTime: uint32(seconds(r.StaleTime)),
			}},
		})
	}
	return out
}

// sendMax is what GoBGP is told: as many as it can count, or no ADD-PATH. It loses count of what it sent where there are more paths than
// that, and sends all that there are when a session opens; so a limit of paths is kept by who says what paths there are.
func sendMax(p bgp.Peer) uint32 {
	if p.AddPath() {
		return math.MaxUint8
	}
	return 0
}

// leastTTL is what is left of the TTL of a packet that took so many hops at most; each was sent with 255.
func leastTTL(hops uint8) uint32 {
	if hops == 0 {
		return 0
	}
	return 256 - uint32(hops)
}

func seconds(d time.Duration) uint64 { return uint64(d / time.Second) }

// GoBGP reports the local address that a session uses in place of the one that was asked for. The description of a
// neighbour keeps the latter.
const localMarkPrefix = "from "

func localMark(a netip.Addr) string {
	if !a.IsValid() {
		return localMarkPrefix + "any address"
	}
	return localMarkPrefix + a.String()
}

func localAddressOf(description string) netip.Addr {
	a, _ := netip.ParseAddr(strings.TrimPrefix(description, localMarkPrefix))
	return a
}

// decodePeer reads back what encodePeer made. Of the limit of paths it knows whether there may be several.
func decodePeer(p *api.Peer) (bgp.Peer, error) {
	c, t, g := p.GetConf(), p.GetTimers().GetConfig(), p.GetGracefulRestart()
	address, err := netip.ParseAddr(c.GetNeighborAddress())
	if err != nil {
		return bgp.Peer{}, fmt.Errorf("neighbour %q: %w", c.GetNeighborAddress(), err)
	}
	out := bgp.Peer{
		Address: address, Port: uint16(p.GetTransport().GetRemotePort()),
		RemoteASN: c.GetPeerAsn(), LocalASN: c.GetLocalAsn(), LocalAddress: localAddressOf(c.GetDescription()),
		Passive: p.GetTransport().GetPassiveMode(), Password: bgp.Secret(c.GetAuthPassword()),
		HoldTime: ofSeconds(t.GetHoldTime()), Keepalive: ofSeconds(t.GetKeepaliveInterval()),
		ConnectRetry: ofSeconds(t.GetConnectRetry()),
	}
	if p.GetEbgpMultihop().GetEnabled() {
		out.EBGPMultihop = uint8(p.GetEbgpMultihop().GetMultihopTtl())
	}
	if p.GetTtlSecurity().GetEnabled() {
		out.TTLSecurity = uint8(256 - p.GetTtlSecurity().GetTtlMin())
	}
	switch {
	case !g.GetEnabled():
		out.Restart.Mode = bgp.RestartNone
	case g.GetLonglivedEnabled():
		out.Restart.Mode = bgp.RestartLongLived
	default:
		out.Restart.Mode = bgp.RestartPlain
	}
	if out.Restart.Mode != bgp.RestartNone {
		out.Restart.RestartTime = ofSeconds(uint64(g.GetRestartTime()))
		out.Restart.Deferral = ofSeconds(uint64(g.GetDeferralTime()))
		out.Restart.Notification = g.GetNotificationEnabled()
	}
	for _, af := range p.GetAfiSafis() {
		out.Families = append(out.Families, bgpFamily(af.GetConfig().GetFamily()))
		out.SendMax = max(1, uint8(af.GetAddPaths().GetConfig().GetSendMax()))
		if out.Restart.Mode == bgp.RestartLongLived {
			out.Restart.StaleTime = ofSeconds(uint64(af.GetLongLivedGracefulRestart().GetConfig().GetRestartTime()))
		}
	}
	slices.Sort(out.Families)
	return out, nil
}

func ofSeconds(n uint64) time.Duration { return time.Duration(n) * time.Second }

// listPeers reads GoBGP's neighbours, by address.
func (s *Speaker) listPeers(ctx context.Context) (map[netip.Addr]*api.Peer, error) {
	out := map[netip.Addr]*api.Peer{}
	var failed error
	err := s.server.ListPeer(ctx, &api.ListPeerRequest{}, func(p *api.Peer) {
		a, err := netip.ParseAddr(p.GetConf().GetNeighborAddress())
		if err != nil {
			failed = fmt.Errorf("neighbour %q: %w", p.GetConf().GetNeighborAddress(), err)
			return
		}
		out[a] = p
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = ctx.Err() // GoBGP stops listing in the middle, without an error
	}
	return out, err
}

// established asks GoBGP whether the session with a peer is open. Its events say so a moment later, and by then the peer may have everything.
func (s *Speaker) established(ctx context.Context, a netip.Addr) (open bool, err error) {
	err = s.server.ListPeer(ctx, &api.ListPeerRequest{Address: a.String()}, func(p *api.Peer) {
		open = open || p.GetState().GetSessionState() == api.PeerState_SESSION_STATE_ESTABLISHED
	})
	return open, cmp.Or(err, ctx.Err())
}
