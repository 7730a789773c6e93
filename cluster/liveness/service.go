// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/fsm"
)

// Prober asks one node for a sign of life. It may be called from any goroutine.
type Prober interface {
	// Answers tells whether anything at one of the addresses answered before ctx ended.
	Answers(ctx context.Context, addresses []netip.Addr) bool
}

// ServiceOptions is what a Service is made of. Fields without "optional" are required.
type ServiceOptions struct {
	Record fsm.Reader
	// Beats lists the newest heartbeat of each node, and since when this member listens; see agents.Service.
	Beats   func() ([]agents.Beat, time.Time)
	Prober  Prober
	Now     func() time.Time      // a clock with a monotonic reading; default time.Now
	Metrics prometheus.Registerer // optional
	Timing  Timing                // zero fields take their default
}

// Service is a member's part: it says what it has not heard, and probes. It implements
// fairleadv1connect.LivenessServiceHandler; that only members call it is seen to in cluster/admin. It knows that it
// was deaf for a while only while Run runs.
type Service struct {
	o      ServiceOptions
	probes *prometheus.CounterVec

	mu   sync.Mutex
	ran  time.Time // when this process last ran, as far as that was noticed
	deaf time.Time // when it last began to run again after it did not
}

var _ fairleadv1connect.LivenessServiceHandler = (*Service)(nil)

// NewService makes a Service. Errors: the metrics are registered already.
func NewService(o ServiceOptions) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Timing = o.Timing.withDefaults()
	s := &Service{o: o, ran: o.Now(), probes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_liveness_probes_total", Help: "Probes of silent nodes that this member made, by what came of them.",
	}, []string{"result"})}
	if o.Metrics != nil {
		if err := o.Metrics.Register(s.probes); err != nil {
			return nil, fmt.Errorf("register metrics of liveness: %w", err)
		}
	}
	return s, nil
}

// Run notices when this process did not get to run, until ctx ends: what it did not hear then says nothing about
// those who spoke. It returns ctx's error.
func (s *Service) Run(ctx context.Context) error {
	ticks := time.NewTicker(s.o.Timing.Beat / 4)
	defer ticks.Stop()
	s.awake(true)
	for {
		select {
		case <-ticks.C:
			s.awake(true)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awake gives since when this process has run without a pause of a beat or more. A tick says that it ran.
func (s *Service) awake(tick bool) (since time.Time) {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.ran) >= s.o.Timing.Beat {
		s.deaf = now
	}
	if tick {
		s.ran = now
	}
	return s.deaf
}

// report is what this member says.
func (s *Service) report(about []fsm.NodeID) Report {
	list, since := s.o.Beats()
	now := s.o.Now()
	if deaf := s.awake(false); deaf.After(since) {
		since = deaf
	}
	beats := make([]Beat, len(list))
	for i, b := range list {
		beats[i] = Beat{Node: b.Node, Boot: b.Boot, Ago: max(0, now.Sub(b.At))}
	}
	nodes := fsm.List[*fsm.Node](s.o.Record.Read(), fsm.TableNodes)
	return s.o.Timing.NewReport(max(0, now.Sub(since)), beats, nodes, about)
}

// probe asks the nodes for signs of life, all at once.
func (s *Service) probe(ctx context.Context, nodes []fsm.NodeID) map[fsm.NodeID]bool {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timing.Within)
	defer cancel()
	view := s.o.Record.Read()
	var probing sync.WaitGroup
	var mu sync.Mutex
	answers := map[fsm.NodeID]bool{}
	for _, id := range nodes {
		n, ok := fsm.Get[*fsm.Node](view, fsm.TableNodes, string(id))
		if !ok || len(n.Addresses) == 0 {
			continue
		}
		probing.Go(func() {
			answered := s.o.Prober.Answers(ctx, n.Addresses)
			result := "silent"
			if answered {
				result = "answered"
			}
			s.probes.WithLabelValues(result).Inc()
			mu.Lock()
			defer mu.Unlock()
			answers[id] = answered
		})
	}
	probing.Wait()
	return answers
}

// Silences implements fairleadv1connect.LivenessServiceHandler.
func (s *Service) Silences(_ context.Context, req *fairleadv1.SilencesRequest) (*fairleadv1.SilencesResponse, error) {
	r := s.report(nodeIDs(req.GetAbout()))
	out := &fairleadv1.SilencesResponse{Heard: uint32(r.Heard)}
	for id, said := range r.Silences {
		out.Silences = append(out.Silences, &fairleadv1.Silence{
			Node: string(id), Boot: string(said.Boot), ForUs: uint64(said.For.Microseconds()),
		})
	}
	return out, nil
}

// Probe implements fairleadv1connect.LivenessServiceHandler.
func (s *Service) Probe(ctx context.Context, req *fairleadv1.ProbeRequest) (*fairleadv1.ProbeResponse, error) {
	if n := len(req.GetNodes()); n > MaxProbes {
		return nil, &admin.Refusal{Code: admin.Invalid, What: "probe", Why: fmt.Sprintf("%d nodes at once", n), Remedy: fmt.Sprintf("ask for %d at most", MaxProbes)}
	}
	out := &fairleadv1.ProbeResponse{}
	for id, answered := range s.probe(ctx, nodeIDs(req.GetNodes())) {
		out.Answers = append(out.Answers, &fairleadv1.ProbeAnswer{Node: string(id), Answered: answered})
	}
	return out, ctx.Err()
}
