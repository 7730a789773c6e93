// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what is to be seen of probes on one host.
type metrics struct {
	checker *Checker
	probes  *prometheus.CounterVec
}

var (
	targetsDesc = prometheus.NewDesc("fairlead_health_targets", "Targets that are probed for policies, by what is thought of them.", []string{"opinion"}, nil)
	voidDesc    = prometheus.NewDesc("fairlead_health_void", "Targets that this host could not ask the last time.", nil, nil)
	goodDesc    = prometheus.NewDesc("fairlead_health_address_good", "Whether an address that is probed is good, by policy or Service; none while nothing is known of it.", []string{"policy", "address", "port"}, nil)
	unfitDesc   = prometheus.NewDesc("fairlead_health_unfit", "Targets that are not probed, since there are too many.", nil, nil)
)

func newMetrics(c *Checker) *metrics {
	return &metrics{c, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_health_probes_total", Help: "Probes of listed addresses of policies, by type and result.",
	}, []string{"type", "result"})}
}

func (m *metrics) probed(t Target, r Result) {
	result := "failed"
	switch {
	case r.Void:
		result = "void"
	case r.OK:
		result = "ok"
	}
	m.probes.WithLabelValues(t.Type, result).Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	m.probes.Describe(to)
	to <- targetsDesc
	to <- voidDesc
	to <- unfitDesc
	to <- goodDesc
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.probes.Collect(to)
	m.checker.mu.Lock()
	by, void := m.checker.book.Counts()
	unfit := m.checker.unfit
	standings := m.checker.standings(maxShown)
	m.checker.mu.Unlock()
	for _, s := range standings {
		good := 0.0
		if s.opinion == Good {
			good = 1
		}
		to <- prometheus.MustNewConstMetric(goodDesc, prometheus.GaugeValue, good, s.policy, s.at.Address.String(), portOf(s.at))
	}
	for _, o := range []Opinion{Unknown, Good, Bad} {
		to <- prometheus.MustNewConstMetric(targetsDesc, prometheus.GaugeValue, float64(by[o]), o.String())
	}
	to <- prometheus.MustNewConstMetric(voidDesc, prometheus.GaugeValue, float64(void))
	to <- prometheus.MustNewConstMetric(unfitDesc, prometheus.GaugeValue, float64(unfit))
}

// maxShown bounds the addresses that metrics name, each time they are read: as many as are probed on a host.
const maxShown = 4096

// standing is what is thought of a place of a policy, or of a Service.
type standing struct {
	policy  string
	at      Place
	opinion Opinion // not Unknown
}

// standings are those of the first so many places of which anything is known, policies and then Services in the order in which they came.
func (c *Checker) standings(most int) (out []standing) {
	for _, r := range c.order {
		p := c.policies[r]
		for _, check := range p.checks {
			if o, _ := c.opinion(p, check.Place); len(out) < most && o != Unknown {
				out = append(out, standing{r.Name, check.Place, o})
			}
		}
	}
	for _, s := range c.services {
		for _, check := range s.checks {
			if o, _ := c.book.OfPlace(check); len(out) < most && o != Unknown {
				out = append(out, standing{serviceName(s.of), check.Place, o})
			}
		}
	}
	return out
}

// portOf names the port of a place as number/protocol; an endpoint of a Service has none.
func portOf(at Place) string {
	if at.Port.Number == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%s", at.Port.Number, protocolName(at.Port.Protocol))
}
