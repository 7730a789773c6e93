// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	descUp        = prometheus.NewDesc("fairlead_bgp_session_up", "1 while the session with a peer is established.", []string{"peer", "address"}, nil)
	descUpdates   = prometheus.NewDesc("fairlead_bgp_updates_sent_total", "UPDATE messages sent to a peer in its present session.", []string{"peer", "address"}, nil)
	descAnnounced = prometheus.NewDesc("fairlead_bgp_announced_paths", "Paths that a peer is sent.", []string{"peer", "address"}, nil)
	descRefused   = prometheus.NewDesc("fairlead_bgp_refused_paths", "Paths that a peer sent and that are ignored.", []string{"peer", "address"}, nil)
	descFault     = prometheus.NewDesc("fairlead_bgp_session_fault", "1 while there is no session with a peer and the reason is known.", []string{"peer", "address", "reason"}, nil)
	descKept      = prometheus.NewDesc("fairlead_bgp_long_lived", "1 if the peer keeps a lost member's paths as a last resort (RFC 9494).", []string{"peer", "address"}, nil)
)

// Describe sends the descriptions of what Collect sends.
func Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descUpdates, descAnnounced, descRefused, descFault, descKept} {
		to <- d
	}
}

// Collect sends how sessions stand.
func Collect(to chan<- prometheus.Metric, peers []PeerStatus) {
	for _, p := range peers {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, kind, v, p.Name, p.Address.String())
		}
		send(descUp, prometheus.GaugeValue, oneIf(p.Established))
		send(descUpdates, prometheus.CounterValue, float64(p.UpdatesSent))
		send(descAnnounced, prometheus.GaugeValue, float64(p.Announced))
		send(descRefused, prometheus.GaugeValue, float64(p.Refused))
		if p.Fault != (Fault{}) {
			to <- prometheus.MustNewConstMetric(descFault, prometheus.GaugeValue, 1, p.Name, p.Address.String(), p.Fault.Code)
		}
		send(descKept, prometheus.GaugeValue, oneIf(p.LongLived))
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
