// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
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
	// Leave ends all use of leases for good, and gives the renewal that says so.
	Leave() l2.Renewal
}

// Times of renewals.
const (
	// renewWithin bounds one; the leader answers sooner also when it has nothing to say.
	renewWithin = 600 * time.Millisecond
	// renewHedge is how long the member that answered last may take before the others are asked, too: it may hang, and
	// another one lead.
	renewHedge = 200 * time.Millisecond
	// renewPause is between two: what changes in one go is told in one go.
	renewPause = 20 * time.Millisecond
	// renewAgainMin and renewAgainMax bound the pauses after which a member that refused is asked again: it may come to
	// lead any moment, and leases last for less than a second.
	renewAgainMin = 20 * time.Millisecond
	renewAgainMax = 500 * time.Millisecond
	// leaveWithin bounds the renewal that gives everything back. Without it, leases end by themselves.
	leaveWithin = 500 * time.Millisecond
)

// lease renews the node's leases while any member says that some are to be, until ctx ends, and gives them back then.
func (a *Agent) lease(ctx context.Context) {
	if a.o.Leases == nil {
		return
	}
	var leader *peer // who answered last
	held := 0
	again := &backoff{min: renewAgainMin, max: renewAgainMax}
	for ctx.Err() == nil {
		if held == 0 && !a.fleet.asks((*peer).asksForLeases) {
			select {
			case <-a.leased:
			case <-ctx.Done():
			}
			continue
		}
		r := a.o.Leases.Renew()
		held = len(r.Held)
		from, leases, err := a.renew(ctx, leader, a.renewal(r), again.pause())
		switch {
		case err == nil:
			again.reset()
			leader = from
			if a.o.Leases.Grant(r.Sent, leases) {
				held = len(leases)
			}
		case ctx.Err() == nil:
			leader = nil
			a.metrics.failed("renew")
			a.log.Debug("leases not renewed", "err", err)
		}
		sleep(ctx, renewPause)
	}
	if held > 0 || leader != nil {
		a.giveBack(context.WithoutCancel(ctx), leader)
	}
}

// giveBack has nothing be answered for any more, and tells the group, so that others can at once.
func (a *Agent) giveBack(ctx context.Context, leader *peer) {
	r := a.o.Leases.Leave()
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	req := a.renewal(r)
	req.Leaving = true
	if _, _, err := a.renew(ctx, leader, req, renewAgainMin); err != nil {
		a.log.Warn("leases not given back: they end by themselves", "err", err)
	}
}

// renew has one renewal answered: by the member that answered the last one, or, when that refuses or takes long, by
// whichever leads. Who refuses is asked again after a pause.
func (a *Agent) renew(ctx context.Context, leader *peer, req *fairleadv1.RenewLeasesRequest, again time.Duration) (*peer, []l2.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	round := &round{req: req, again: again, answers: make(chan answer), refused: make(chan error)}
	peers := a.fleet.order(nil)
	others := time.After(0)
	if leader != nil {
		go round.ask(ctx, leader)
		peers = slices.DeleteFunc(peers, func(p *peer) bool { return p == leader })
		others = time.After(renewHedge)
	}
	var first error
	for {
		select {
		case got := <-round.answers:
			return got.from, got.leases, nil
		case err := <-round.refused:
			first = cmp.Or(first, err)
			if others != nil {
				others = time.After(0)
			}
		case <-others:
			others = nil
			for _, p := range peers {
				go round.ask(ctx, p)
			}
		case <-ctx.Done():
			return nil, nil, cmp.Or(first, errNobody)
		}
	}
}

// round is one renewal that several members are asked to answer.
type round struct {
	req     *fairleadv1.RenewLeasesRequest
	again   time.Duration // pause before a member that refused is asked again
	answers chan answer
	refused chan error
}

type answer struct {
	from   *peer
	leases []l2.Lease
}

// ask asks one member until it answers or ctx ends.
func (r *round) ask(ctx context.Context, p *peer) {
	for {
		leases, err := p.renewLeases(ctx, r.req)
		if err == nil {
			select {
			case r.answers <- answer{p, leases}:
			case <-ctx.Done():
			}
			return
		}
		select {
		case r.refused <- err:
		case <-ctx.Done():
			return
		}
		if !sleep(ctx, r.again) {
			return
		}
	}
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

// asks tells whether any member asks for something.
func (f *fleet) asks(what func(*peer) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		if what(p) {
			return true
		}
	}
	return false
}

// asksForLeases tells whether the member says that leases are to be renewed.
func (p *peer) asksForLeases() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive && p.leases
}
