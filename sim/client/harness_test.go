// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/client"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/httpd"
)

// bench is a group of three members that share one record, behind the API as it ships. What goes wrong is between a call
// and the API, and in who leads.
type bench struct {
	*client.Group
	w      *engine.World
	n      *network.Network
	state  *fsm.State
	events []event.Stamped
	leader int
	random *rand.Rand
	rough  bool // calls are lost, before or after they were carried out, or carried out late
	index  fsm.Index
	actors map[string]int // who had proposals committed
}

func newBench(seed uint64) *bench {
	b := &bench{w: engine.New(seed), state: fsm.New(), index: 1, actors: map[string]int{}}
	b.n, b.random = network.New(b.w, network.Options{}), b.w.Random("bench")
	b.w.Hear(func(e event.Stamped) { b.events = append(b.events, e) })
	b.Group = client.New(client.Options{
		World: b.w, Network: b.n, Members: func() []string { return []string{"m1", "m2", "m3"} }, Record: b.state.Read,
	})
	for i := range 3 {
		b.serve(i)
	}
	return b
}

// found founds the group.
func (b *bench) found() {
	b.commit(0, fsm.Proposal{Command: &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}})
}

// commit applies proposals as one entry of the log.
func (b *bench) commit(epoch fsm.Epoch, proposals ...fsm.Proposal) []fsm.Outcome {
	b.index++
	data, err := fsm.EncodeEntry(epoch, proposals)
	if err != nil {
		panic(err)
	}
	out := b.state.ApplyEntries([]fsm.LogEntry{{Index: b.index, Term: 1, Data: data}})[0]
	b.w.Publish(event.Applied{Process: "m1", Index: uint64(b.index), Term: 1, Entry: data, Digest: b.state.Read().Digest().String()})
	return out
}

// seat is a member as the API sees it.
type seat struct {
	b *bench
	i int
}

func (s seat) ProposeLocal(_ context.Context, _ cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	switch {
	case s.b.leader != s.i:
		return nil, cluster.ErrNotLeader
	case s.b.rough && s.b.random.IntN(5) == 0:
		return nil, cluster.ErrBusy
	}
	for _, p := range proposals {
		s.b.actors[p.Actor]++
	}
	return s.b.commit(s.b.state.Read().Group().Epoch, proposals...), nil
}

func (s seat) Propose(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	return s.ProposeLocal(ctx, u, proposals...)
}

func (s seat) VerifyLeader(context.Context) error { return nil }
func (s seat) LeadingTerm() uint64                { return 1 }
func (s seat) Contact() cluster.Contact           { return cluster.Contact{} }

// serve answers at a member's port.
func (b *bench) serve(i int) {
	server, err := admin.NewServer(admin.ServerOptions{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	if err != nil {
		panic(err)
	}
	me := seat{b, i}
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRecordServiceHandler(records.New(records.Options{
			Member: fmt.Sprint("m", i+1), Record: b.state, Leader: me, Proposer: me, Barrier: func(context.Context) error { return nil },
		}), o...)
	})
	httpd.Serve(b.n, fmt.Sprint("m", i+1), start.APIPort, func(r *httpd.Request, a *httpd.Answer) {
		answer := func() { b.answer(server.Handler(), r, a) }
		if !b.rough {
			answer()
			return
		}
		switch b.random.IntN(8) {
		case 0: // it gets lost
		case 1: // the connection breaks, before or after it was carried out
			a.Break()
		case 2:
			b.answer(server.Handler(), r, nil)
			a.Break()
		case 3: // it is carried out after its caller has given up
			b.w.After(time.Duration(b.random.Int64N(int64(6*time.Second))), answer)
		default:
			b.w.After(time.Duration(b.random.Int64N(int64(time.Second))), answer)
		}
		if b.random.IntN(10) == 0 {
			b.leader = b.random.IntN(3)
		}
	})
}

// answer has the API answer, to nobody if a is nil.
func (b *bench) answer(api http.Handler, r *httpd.Request, a *httpd.Answer) {
	caller := admin.Caller{Identity: pki.Identity{Domain: "fairlead", Role: pki.Operator, Name: r.From}}
	if r.From == client.Machine {
		caller.Identity.Role = pki.Member
		var newer bool
		if _, err := fmt.Sscan(r.Get("Fairlead-Membership"), &caller.Membership.Group, &caller.Membership.Epoch, &newer); err != nil || newer {
			panic(fmt.Sprintf("membership %q: %v", r.Get("Fairlead-Membership"), err))
		}
	}
	request := httptest.NewRequest(r.Method, r.Path, bytes.NewReader(r.Body))
	request.Header = http.Header(r.Header)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, request.WithContext(admin.WithCaller(request.Context(), caller)))
	if a != nil {
		a.Respond(w.Code, map[string]string{"Content-Type": w.Header().Get("Content-Type")}, w.Body.Bytes())
	}
}
