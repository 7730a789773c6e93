// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/dataplane/l2"
)

// Leases is the node's part of who answers for addresses on its segments; *l2.L2 is one.
type Leases interface {
	// Renew begins a renewal, which is sent at once.
	Renew() l2.Renewal
	// Grant takes in the answer to the renewal that was sent then: all leases of the node. It tells whether it counted.
	Grant(sent time.Duration, leases []l2.Lease) bool
}

// Times of renewals.
const (
	// renewWithin bounds one; the leader answers sooner also when it has nothing to say.
	renewWithin = time.Second
	// renewPause is between two: what changes in one go is told in one go.
	renewPause = 20 * time.Millisecond
)

// lease renews the node's leases while any member says that some are to be, until ctx ends. Renewals go to the member that
// answered the last one, and to all when that does not: only the leader does.
func (a *Agent) lease(ctx context.Context) {
	if a.o.Leases == nil {
		return
	}
	var leader *peer
	held := 0
	retry := a.o.Tuning.backoff()
	retry.max = min(retry.max, renewWithin)
	for ctx.Err() == nil {
		if held == 0 && !a.fleet.leases() {
			select {
			case <-a.leased:
			case <-ctx.Done():
			}
			continue
		}
		r := a.o.Leases.Renew()
		held = len(r.Held)
		from, leases, err := a.renew(ctx, leader, r)
		leader = from
		pause := renewPause
		if err != nil {
			if ctx.Err() == nil {
				a.metrics.failed("renew")
				a.log.Debug("leases not renewed", "err", err)
			}
			pause = retry.pause()
		} else {
			retry.reset()
			if a.o.Leases.Grant(r.Sent, leases) {
				held = len(leases)
			}
		}
		sleep(ctx, pause)
	}
}

// renew has one renewal answered: by the member that is believed to lead, if any, or by whichever member does.
func (a *Agent) renew(ctx context.Context, leader *peer, r l2.Renewal) (*peer, []l2.Lease, error) {
	ask := []*peer{leader}
	if leader == nil {
		ask = a.fleet.order(nil)
	}
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	type answer struct {
		from   *peer
		leases []l2.Lease
		err    error
	}
	answers := make(chan answer, len(ask))
	req := a.renewal(r)
	for _, p := range ask {
		go func() {
			leases, err := p.renewLeases(ctx, req)
			answers <- answer{p, leases, err}
		}()
	}
	var first error
	for range ask {
		got := <-answers
		if got.err == nil {
			return got.from, got.leases, nil
		}
		first = cmp.Or(first, got.err)
	}
	return nil, nil, cmp.Or(first, errNobody)
}

func (a *Agent) renewal(r l2.Renewal) *fairleadv1.RenewLeasesRequest {
	req := &fairleadv1.RenewLeasesRequest{Node: a.o.Node, Boot: a.o.Boot, SentNs: uint64(r.Sent)}
	for _, h := range r.Held {
		req.Held = append(req.Held, &fairleadv1.HeldLease{Address: h.Address.AsSlice(), Fence: desired.RevisionMessage(h.Fence)})
	}
	for _, l := range r.Links {
		link := &fairleadv1.Link{Name: l.Name, Up: l.Up, Deaf: l.Deaf}
		for _, p := range l.Prefixes {
			link.Prefixes = append(link.Prefixes, p.String())
		}
		req.Links = append(req.Links, link)
	}
	return req
}

func (p *peer) renewLeases(ctx context.Context, req *fairleadv1.RenewLeasesRequest) (out []l2.Lease, err error) {
	res, err := p.conn().RenewLeases(ctx, req)
	if err != nil {
		return nil, err
	}
	for _, g := range res.GetLeases() {
		address, ok := netip.AddrFromSlice(g.GetAddress())
		term := time.Duration(g.GetTermNs())
		if !ok || term <= 0 {
			return nil, fmt.Errorf("lease of %d bytes of address for %s: no such thing", len(g.GetAddress()), term)
		}
		out = append(out, l2.Lease{
			Address: address, Fence: desired.RevisionOf(g.GetFence()), Term: term, Keep: g.GetKeep(), Interfaces: g.GetInterfaces(),
		})
	}
	return out, nil
}

// leases tells whether any member says that leases are to be renewed.
func (f *fleet) leases() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		if p.asksForLeases() {
			return true
		}
	}
	return false
}

func (p *peer) asksForLeases() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive && p.leases
}
