// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/fsm"
)

// aside takes this member out of its duties while an operator drains it: it hands leadership on, again whenever it is elected,
// and ends its BGP sessions once the others do without it.
type aside struct {
	node     *cluster.Node
	state    *fsm.State
	name     string                         // of this member
	sessions func() map[fsm.PeerName]string // this member's
	reach    func(cluster.Peer) (fairleadv1connect.RecordServiceClient, error)
	log      *slog.Logger
}

// Times of stepping aside.
const (
	asideLook = 500 * time.Millisecond // between looks at the others
	// asideSettle is for how long the others must have done without this member: a session that has just opened has not
	// taken all paths yet.
	asideSettle = 2 * time.Second
	asideAsk    = time.Second // how long another member may take for an answer
	// asideRetry is between two attempts to hand leadership on: the group takes no proposals during one.
	asideRetry = 5 * time.Second
)

// drain is the operator's word, nil if there is none.
func (a *aside) drain(v *fsm.View) *fsm.Drain {
	d, ok := fsm.Get[*fsm.Drain](v, fsm.TableDrains, string(fsm.DrainMember)+"/"+a.name)
	if !ok {
		return nil
	}
	return d
}

// lead hands leadership on while this member is drained; a cluster.LeaderFunc.
func (a *aside) lead(ctx context.Context, _ uint64) {
	for ctx.Err() == nil {
		v := a.state.Read()
		if a.drain(v) == nil {
			_ = a.state.Wait(ctx, v, fsm.TableDrains) // ctx ended
			continue
		}
		wait := asideLook
		if a.handOver(ctx, v) != nil {
			wait = asideRetry
		}
		pause(ctx, wait)
	}
}

// handOver has the one of the members that stay lead that is furthest, of those that answer. There may be none. It gives the error
// of an attempt.
func (a *aside) handOver(ctx context.Context, v *fsm.View) error {
	others := slices.DeleteFunc(a.others(), func(p cluster.PeerStatus) bool { return !p.Answer || v.Drained(fsm.DrainMember, p.Name) })
	if len(others) == 0 {
		return nil
	}
	to := slices.MaxFunc(others, func(p, q cluster.PeerStatus) int { return cmp.Compare(p.Last, q.Last) })
	err := a.node.Transfer(ctx, to.ID)
	switch {
	case err == nil:
		a.log.Info("leadership handed on: this member is drained", "to", to.Name)
	case ctx.Err() == nil:
		a.log.Warn("leadership not handed on", "to", to.Name, "err", err)
	}
	return err
}

// others are the voters but for this one.
func (a *aside) others() []cluster.PeerStatus {
	return slices.DeleteFunc(a.node.Peers(), func(p cluster.PeerStatus) bool { return p.Self || !p.Voter })
}

// run steps aside while this member is drained, until ctx ends.
func (a *aside) run(ctx context.Context) error {
	var since time.Time // when the others first did without it
	said := ""
	for {
		v := a.state.Read()
		d := a.drain(v)
		if d == nil || !d.Aside.IsZero() {
			since, said = time.Time{}, ""
			if a.state.Wait(ctx, v, fsm.TableDrains) != nil {
				return nil
			}
			continue
		}
		why := a.needed(ctx, v, d)
		switch {
		case why != "":
			since = time.Time{}
			if why != said && ctx.Err() == nil {
				a.log.Info("drained, and does not step aside yet", "reason", why)
			}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= asideSettle:
			a.step(ctx, d)
		}
		said = why
		if !pause(ctx, asideLook) {
			return nil
		}
	}
}

func (a *aside) step(ctx context.Context, d *fsm.Drain) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := a.node.Propose(ctx, cluster.Urgent, fsm.Proposal{
		Actor: "member/" + a.name, Reason: "the others do without it", AtUnixMilli: time.Now().UnixMilli(),
		Command: &fsm.StepAside{Name: a.name, Since: d.Since},
	})
	if err == nil {
		err = out[0].Err()
	}
	if err != nil {
		a.log.Warn("not stepped aside", "err", err)
	}
}

// needed tells why the group does not do without this member, empty if it does: another one leads, the others are a majority
// or, in a group of two, somebody, and each session of this member has its like on a member that stays and has announced what
// was there when the drain began.
func (a *aside) needed(ctx context.Context, v *fsm.View, d *fsm.Drain) string {
	if a.node.LeadingTerm() != 0 {
		return "it leads"
	}
	if !a.node.Contact().CaughtUp() {
		return "it is behind, or out of touch with the group"
	}
	others := a.others()
	answers, held := a.ask(ctx, v, d, others)
	if want := min((len(others)+1)/2+1, len(others)); answers < want || want == 0 {
		return fmt.Sprintf("%d other members answer, and %d are a quorum", answers, max(want, 1))
	}
	mine := a.sessions()
	for _, peer := range slices.Sorted(maps.Keys(mine)) {
		if mine[peer] == established && !held[peer] {
			return fmt.Sprintf("no other member holds a session with peer %s and has announced what this one did", peer)
		}
	}
	return ""
}

// established is a session that is open, as speakers name it.
const established = "established"

// ask tells how many of the others answer, and with which peers those hold sessions that stay and have announced what was there
// when the drain began.
func (a *aside) ask(ctx context.Context, v *fsm.View, d *fsm.Drain, others []cluster.PeerStatus) (answers int, held map[fsm.PeerName]bool) {
	held = map[fsm.PeerName]bool{}
	for _, p := range others {
		peers, err := a.peersOf(ctx, p.Peer)
		if err != nil {
			a.log.Debug("member not asked", "member", p.Name, "err", err)
			continue
		}
		answers++
		m, known := fsm.Get[*fsm.Member](v, fsm.TableMembers, p.ID)
		if !known || v.Drained(fsm.DrainMember, p.Name) || m.Announced.Before(d.Since) {
			continue
		}
		for _, peer := range peers {
			for _, s := range peer.Sessions {
				held[fsm.PeerName(peer.Name)] = held[fsm.PeerName(peer.Name)] || s.State == established
			}
		}
	}
	return answers, held
}

// peersOf asks a member for its peers and sessions.
func (a *aside) peersOf(ctx context.Context, p cluster.Peer) (out []records.Peer, err error) {
	ctx, cancel := context.WithTimeout(ctx, asideAsk)
	defer cancel()
	client, err := a.reach(p)
	if err != nil {
		return nil, err
	}
	for req := (&fairleadv1.GetRequest{Kind: "peers"}); ; {
		found, err := client.Get(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, text := range found.GetDocuments() {
			var peer records.Peer
			if err := json.Unmarshal([]byte(text), &peer); err != nil {
				return nil, fmt.Errorf("peers of %s: %w", p.Name, err)
			}
			out = append(out, peer)
		}
		if !found.GetMore() {
			return out, nil
		}
		req.After = found.GetNext()
	}
}

// pause waits, and tells whether ctx still runs.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
