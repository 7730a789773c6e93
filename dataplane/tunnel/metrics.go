// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	hosts    prometheus.Gauge
	mtu      prometheus.Gauge
	up       prometheus.Gauge
	changes  prometheus.Counter
	repairs  prometheus.Counter
	failures prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		hosts: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_tunnel_hosts", Help: "Other hosts that this one has a tunnel to.",
		}),
		mtu: prometheus.NewGauge(prometheus.GaugeOpts{Name: "fairlead_tunnel_mtu_bytes", Help: "MTU of the tunnels."}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_tunnel_up", Help: "1 while this host's tunnel is as it should be, 0 while it is not, or there shall be none.",
		}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_tunnel_changes_total", Help: "Changes that were made to the tunnel's interface and table.",
		}),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_tunnel_repairs_total", Help: "How often the tunnel was put right after somebody else changed it.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_tunnel_failures_total", Help: "How often the tunnel could not be brought to what it should be.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.hosts, m.mtu, m.up, m.changes, m.repairs, m.failures} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of tunnel: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) changed(n int) { m.changes.Add(float64(n)) }

func (m *metrics) have(want *Wanted, err error) {
	m.up.Set(0)
	if want == nil {
		m.hosts.Set(0)
		m.mtu.Set(0)
		return
	}
	m.hosts.Set(float64(len(want.Others)))
	if err == nil {
		m.up.Set(1)
		m.mtu.Set(float64(want.MTU))
	}
}
