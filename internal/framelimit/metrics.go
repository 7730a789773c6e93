// SPDX-License-Identifier: Apache-2.0

package framelimit

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count for all ports of a process. A nil *Metrics counts nothing.
type Metrics struct{ slow *prometheus.CounterVec }

// NewMetrics gives those of a registry, which are made once. Errors: something else has their names.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{slow: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_connections_slowed_total", Help: "Times when a port stopped reading from a connection, since more had come than it takes.",
	}, []string{"port"})}
	var already prometheus.AlreadyRegisteredError
	switch err := registry.Register(m.slow); {
	case err == nil:
	case errors.As(err, &already):
		m.slow = already.ExistingCollector.(*prometheus.CounterVec)
	default:
		return nil, fmt.Errorf("register metrics of frames: %w", err)
	}
	return m, nil
}

// prepare shows a port before anything happens there.
func (m *Metrics) prepare(port string) {
	if m != nil {
		m.slow.WithLabelValues(port)
	}
}

func (m *Metrics) slowed(port string) {
	if m != nil {
		m.slow.WithLabelValues(port).Inc()
	}
}
