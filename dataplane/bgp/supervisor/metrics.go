// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/dataplane/bgp"
)

var (
	descUp        = prometheus.NewDesc("fairlead_bgp_session_up", "1 while the session with a peer is established.", []string{"peer", "address"}, nil)
	descUpdates   = prometheus.NewDesc("fairlead_bgp_updates_sent_total", "UPDATE messages sent to a peer in its present session.", []string{"peer", "address"}, nil)
	descAnnounced = prometheus.NewDesc("fairlead_bgp_announced_paths", "Paths that a peer is sent.", []string{"peer", "address"}, nil)
	descRefused   = prometheus.NewDesc("fairlead_bgp_refused_paths", "Paths that a peer sent and that are ignored.", []string{"peer", "address"}, nil)
	descFault     = prometheus.NewDesc("fairlead_bgp_session_fault", "1 while there is no session with a peer and the reason is known.", []string{"peer", "address", "reason"}, nil)
	descKept      = prometheus.NewDesc("fairlead_bgp_long_lived", "1 if the peer keeps a lost member's paths as a last resort (RFC 9494).", []string{"peer", "address"}, nil)
	descHeldBack  = prometheus.NewDesc("fairlead_bgp_peers_held_back_total", "Times that a peer was held back since the BGP speaker's process died of it again.", nil, nil)
	descDemanding = prometheus.NewDesc("fairlead_bgp_sessions_closed_demanding_total", "Sessions with a peer that were closed since it asked for all paths again and again, as the present process of the BGP speaker counts.", []string{"peer", "address"}, nil)
	descRestarts  = prometheus.NewDesc("fairlead_bgp_speaker_restarts_total", "Processes of the BGP speaker that ended and were started again.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Speaker) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descUpdates, descAnnounced, descRefused, descFault, descKept, descRestarts, descHeldBack, descDemanding} {
		to <- d
	}
}

// Collect implements prometheus.Collector. Of a child that has ended there are no sessions to show.
func (s *Speaker) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWait)
	defer cancel()
	to <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(s.Restarts()))
	to <- prometheus.MustNewConstMetric(descHeldBack, prometheus.CounterValue, float64(s.HeldBack()))
	list, err := s.Peers(ctx)
	if err != nil {
		return
	}
	for _, p := range list {
		collect(to, p)
	}
}

// collect sends how a session stands.
func collect(to chan<- prometheus.Metric, p bgp.PeerStatus) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		to <- prometheus.MustNewConstMetric(d, kind, v, p.Name, p.Address.String())
	}
	send(descUp, prometheus.GaugeValue, oneIf(p.Established))
	send(descUpdates, prometheus.CounterValue, float64(p.UpdatesSent))
	send(descAnnounced, prometheus.GaugeValue, float64(p.Announced))
	send(descRefused, prometheus.GaugeValue, float64(p.Refused))
	send(descDemanding, prometheus.CounterValue, float64(p.Demanding))
	if p.Fault != (bgp.Fault{}) {
		to <- prometheus.MustNewConstMetric(descFault, prometheus.GaugeValue, 1, p.Name, p.Address.String(), p.Fault.Code)
	}
	send(descKept, prometheus.GaugeValue, oneIf(p.LongLived))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
