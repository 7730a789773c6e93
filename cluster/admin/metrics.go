// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
	limited  *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_api_requests_total",
			Help: "Calls of the API that were answered, by how they ended.",
		}, []string{"procedure", "role", "code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_api_refused_total",
			Help: "Calls of the API that the caller's certificate does not allow.",
		}, []string{"procedure", "role"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_api_limited_total",
			Help: "Calls and messages of the API that were refused since their certificate asks for too much, by limit (calls, changes, messages).",
		}, []string{"procedure", "role", "limit"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fairlead_api_request_seconds",
			Help:    "How long unary calls of the API took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12), // to 12 s
		}, []string{"procedure"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_api_streams",
			Help: "Streams of the API that are open.",
		}, []string{"procedure"}),
	}
	for _, collector := range []prometheus.Collector{m.requests, m.refused, m.limited, m.seconds, m.streams} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of the API: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) ended(procedure string, caller Caller, err error) {
	code := "ok"
	var refused Code
	switch {
	case errors.As(err, &refused):
		code = string(refused)
	case err != nil:
		code = connect.CodeOf(err).String()
	}
	m.requests.WithLabelValues(procedure, string(caller.Identity.Role), code).Inc()
}
