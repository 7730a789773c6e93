// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/fsm"
)

// Leases answers renewals while this member leads; *leases.Leader is one.
type Leases interface {
	Renew(ctx context.Context, r leases.Renewal) ([]leases.Grant, error)
}

// Bounds of what a node says in a renewal.
const (
	maxLinks    = 64
	maxPrefixes = 64 // of one link
	maxHeld     = 65_536
)

// RenewLeases implements fairleadv1connect.AgentServiceHandler.
func (s *Service) RenewLeases(ctx context.Context, req *fairleadv1.RenewLeasesRequest) (*fairleadv1.RenewLeasesResponse, error) {
	refuse := func(code admin.Code, why, remedy string) (*fairleadv1.RenewLeasesResponse, error) {
		return nil, &admin.Refusal{Code: code, What: "renew leases of node " + req.GetNode(), Why: why, Remedy: remedy}
	}
	if s.o.Leases == nil {
		return refuse(admin.NotReady, "this member grants none", "ask another member")
	}
	r, err := renewalOf(req)
	if err != nil {
		return refuse(admin.Invalid, err.Error(), "use an agent of this release")
	}
	grants, err := s.o.Leases.Renew(ctx, r)
	switch {
	case errors.Is(err, leases.ErrNotLeading):
		return refuse(admin.NotLeader, err.Error(), "ask the other members")
	case err != nil && ctx.Err() == nil:
		return refuse(admin.NotReady, err.Error(), "ask again")
	case err != nil:
		return nil, err
	}
	out := &fairleadv1.RenewLeasesResponse{}
	for _, g := range grants {
		out.Leases = append(out.Leases, &fairleadv1.GrantedLease{
			Address: g.VIP.AsSlice(), Fence: desired.RevisionMessage(g.Fence), TermNs: uint64(g.Term), Keep: g.Keep, Interfaces: g.Interfaces,
		})
	}
	return out, nil
}

// renewalOf reads a renewal.
func renewalOf(req *fairleadv1.RenewLeasesRequest) (leases.Renewal, error) {
	r := leases.Renewal{Node: fsm.NodeID(req.GetNode()), Boot: fsm.BootID(req.GetBoot()), Sent: time.Duration(req.GetSentNs()), Leaving: req.GetLeaving()}
	if r.Node == "" || r.Boot == "" || r.Sent < 0 {
		return r, errors.New("node, boot or time is missing")
	}
	if len(req.GetLinks()) > maxLinks || len(req.GetHeld()) > maxHeld {
		return r, errors.New("it names too many links or leases")
	}
	for _, h := range req.GetHeld() {
		a, ok := netip.AddrFromSlice(h.GetAddress())
		if !ok {
			return r, errors.New("an address has 4 or 16 bytes")
		}
		r.Held = append(r.Held, leases.Held{VIP: a, Fence: desired.RevisionOf(h.GetFence())})
	}
	for _, l := range req.GetLinks() {
		link := desired.Link{Name: l.GetName(), Up: l.GetUp(), Deaf: l.GetDeaf()}
		if len(l.GetPrefixes()) > maxPrefixes {
			return r, errors.New("a link has too many networks")
		}
		for _, text := range l.GetPrefixes() {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return r, err
			}
			link.Prefixes = append(link.Prefixes, p)
		}
		r.Links = append(r.Links, link)
	}
	return r, nil
}
