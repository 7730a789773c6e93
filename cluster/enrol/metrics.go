// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// The calls, in metrics and logs.
const (
	callEnrol  = "enrol"
	callRenew  = "renew"
	callOffer  = "offer"
	callHandOn = "hand-on"
)

// metrics count what was asked of a member.
type metrics struct{ calls *prometheus.CounterVec }

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{calls: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_certificate_calls_total",
		Help: "Calls for certificates and one-time tokens, by what came of them: granted, or why not.",
	}, []string{"call", "result"})}
	if registry == nil {
		return m, nil
	}
	if err := registry.Register(m.calls); err != nil {
		return nil, fmt.Errorf("register metrics of enrolment: %w", err)
	}
	return m, nil
}

func (m *metrics) count(call, result string) { m.calls.WithLabelValues(call, result).Inc() }
