// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what this package counts. Without a registerer it counts for nobody.
type metrics struct {
	proposals *prometheus.CounterVec   // commands, by urgency and result
	latency   *prometheus.HistogramVec // of accepted calls, by urgency
	batches   *prometheus.HistogramVec // commands per entry, by urgency
	terms     prometheus.Counter       // leaderships won
	expelled  prometheus.Counter       // servers seen to have lost entries
}

func newMetrics() *metrics {
	return &metrics{
		proposals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_raft_proposals_total", Help: "Commands proposed on this member, by queue and result.",
		}, []string{"urgency", "result"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_raft_propose_seconds", Help: "From proposing to the outcome.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"urgency"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_raft_batch_commands", Help: "Commands in one log entry.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}, []string{"urgency"}),
		terms: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_raft_leaderships_total", Help: "Terms in which this member won the leadership.",
		}),
		expelled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_raft_rolled_back_total", Help: "Servers that were seen to have lost entries they had acknowledged.",
		}),
	}
}

// register hands everything to r, once the library runs.
func (m *metrics) register(r prometheus.Registerer, n *Node) {
	r.MustRegister(m.proposals, m.latency, m.batches, m.terms, m.expelled)
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("fairlead_raft_term", "Current term.", func() float64 { return float64(n.raft.CurrentTerm()) })
	gauge("fairlead_raft_leads", "1 while this member leads.", func() float64 {
		if n.LeadingTerm() > 0 {
			return 1
		}
		return 0
	})
	gauge("fairlead_raft_recalling", "1 while this member takes no part, and asks the others whether its data folder is an older one.", func() float64 {
		if n.seen.mute.Load() {
			return 1
		}
		return 0
	})
	gauge("fairlead_raft_commit_index", "Newest index known to be committed.",
		func() float64 { return float64(n.Contact().Commit) })
	gauge("fairlead_raft_applied_index", "Index up to which the record is complete.",
		func() float64 { return float64(n.effective()) })
	gauge("fairlead_raft_log_bytes", "What the entries of this member's log take, without the free room in its file.",
		func() float64 { return float64(n.meter.Bytes()) })
	gauge("fairlead_raft_contact_age_seconds", "Time since this member was in touch with a leader or a majority; -1 if never.",
		func() float64 {
			at := n.Contact().At
			if at.IsZero() {
				return -1
			}
			return time.Since(at).Seconds()
		})
	gauge("fairlead_raft_record_age_seconds", "Time since the moment as of which this member's record is known to be complete; -1 if never. It grows where a leader is heard and its entries do not arrive.",
		func() float64 {
			at := n.Contact().AsOf
			if at.IsZero() {
				return -1
			}
			return time.Since(at).Seconds()
		})
	gauge("fairlead_raft_write_wait_seconds", "For how long a write of the log or a vote is waited for, 0 if none is under way.",
		func() float64 { return n.guard.Waits().Seconds() })
	gauge("fairlead_raft_members_behind", "Servers that lack what was committed 5 s ago, as the leader knows; 0 on others.",
		func() float64 { return float64(n.behind()) })
	for _, u := range []Urgency{Bulk, Urgent} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "fairlead_raft_queue_commands", Help: "Commands that wait for their turn.",
			ConstLabels: prometheus.Labels{"urgency": u.String()},
		}, func() float64 { return float64(n.queue.depth(u)) }))
	}
}

func (m *metrics) proposed(u Urgency, commands int, err error, took time.Duration) {
	result := "ok"
	switch {
	case err == nil:
		m.latency.WithLabelValues(u.String()).Observe(took.Seconds())
	case errors.Is(err, ErrUnknownOutcome):
		result = "unknown"
	case errors.Is(err, ErrNotLeader):
		result = "not-leader"
	case errors.Is(err, ErrBusy):
		result = "busy"
	default:
		result = "failed"
	}
	m.proposals.WithLabelValues(u.String(), result).Add(float64(commands))
}

// unfit counts a command that was set aside.
func (m *metrics) unfit(u Urgency) { m.proposals.WithLabelValues(u.String(), "unfit").Inc() }

func (m *metrics) batched(u Urgency, commands int) {
	m.batches.WithLabelValues(u.String()).Observe(float64(commands))
}

func (m *metrics) won() { m.terms.Inc() }
