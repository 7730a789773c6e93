// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
)

// isHost tells whether a call is made by a host outside the cluster, as its certificate says.
func isHost(ctx context.Context) bool {
	caller, _ := admin.CallerFrom(ctx)
	return caller.Identity.Role == pki.Host
}

// takenOut refuses a host that the group does not have.
func takenOut(what, name string) error {
	return &admin.Refusal{
		Code: admin.Forbidden, What: what, Why: "the group did not take host " + name + " in, or took it out",
		Remedy: "enrol it anew: `fairlead pki enrol " + name + " --outside`",
	}
}

// maxUnderlay bounds the addresses of one host.
const maxUnderlay = 16

// underlayOf reads where a host says that it is.
func underlayOf(req *fairleadv1.SyncRequest) (out []netip.Addr, err error) {
	if n := len(req.GetAddresses()); n > maxUnderlay {
		return nil, fmt.Errorf("%d addresses, at most %d make sense", n, maxUnderlay)
	}
	for _, b := range req.GetAddresses() {
		a, ok := netip.AddrFromSlice(b)
		if !ok || a.Is4In6() {
			return nil, fmt.Errorf("%d bytes are no address", len(b))
		}
		out = append(out, a)
	}
	return out, nil
}

// hearHost answers a host's heartbeat. Nobody judges by it whether the host lives: nothing depends on that.
func (s *Service) hearHost(req *fairleadv1.HeartbeatRequest, said *fairleadv1.HeartbeatResponse) (*fairleadv1.HeartbeatResponse, error) {
	view := s.o.Record.Read()
	if _, ok := fsm.Get[*fsm.Host](view, fsm.TableHosts, req.GetNode()); !ok {
		return nil, takenOut("heartbeat", req.GetNode())
	}
	answer := &fairleadv1.HeartbeatResponse{
		Applied: desired.RevisionMessage(view.Revision()), InQuorum: s.standing.good(), Revoked: s.revoked.of(view),
	}
	if !req.GetAnswer() && said != nil && said.GetInQuorum() == answer.GetInQuorum() && said.GetRevoked() == answer.GetRevoked() {
		return nil, nil
	}
	return answer, nil
}

// reports are what hosts say that they carried out. Nobody waits for it, so that it is committed now and then, the newest of each.
type reports struct {
	o Options

	mu      sync.Mutex
	pending map[fsm.HostID]fsm.HostMark
}

func newReports(o Options) *reports {
	return &reports{o: o, pending: map[fsm.HostID]fsm.HostMark{}}
}

// note takes a mark in, of a host that the group has: there are only so many of those.
func (r *reports) note(m fsm.AppliedMark) (*fairleadv1.AcknowledgeResponse, error) {
	if _, ok := fsm.Get[*fsm.Host](r.o.Record.Read(), fsm.TableHosts, string(m.Node)); !ok {
		return nil, takenOut("acknowledge", string(m.Node))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[fsm.HostID(m.Node)] = fsm.HostMark{Host: fsm.HostID(m.Node), Boot: m.Boot, Upto: m.Upto}
	return &fairleadv1.AcknowledgeResponse{}, nil
}

// run commits what was noted, until ctx ends.
func (r *reports) run(ctx context.Context) error {
	ticks := time.NewTicker(r.o.Tuning.Note)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			r.commit(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// commit proposes the marks that still are news. What is not taken is lost: the next one says more.
func (r *reports) commit(ctx context.Context) {
	view := r.o.Record.Read()
	r.mu.Lock()
	all := r.pending
	r.pending = map[fsm.HostID]fsm.HostMark{}
	r.mu.Unlock()
	var marks []fsm.HostMark
	for id, m := range all {
		h, ok := fsm.Get[*fsm.Host](view, fsm.TableHosts, string(id))
		if ok && h.Boot == m.Boot && h.Acknowledged.Before(m.Upto) {
			marks = append(marks, m)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, proposeWithin)
	defer cancel()
	for len(marks) > 0 {
		batch := marks[:min(len(marks), maxMarks)]
		marks = marks[len(batch):]
		if _, err := r.o.Proposer.Propose(ctx, cluster.Bulk, r.o.proposal("carried out", &fsm.ReportHosts{Marks: batch})); err != nil {
			if ctx.Err() == nil {
				r.o.Log.Debug("what hosts carried out was not noted", "err", err)
			}
			return
		}
	}
}
