// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	answered, announced, failed prometheus.Counter
}

func newMetrics(r prometheus.Registerer, answering, missing func() int) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		answered:  counter("fairlead_l2_answers_total", "Answers to ARP and neighbor solicitations for service addresses."),
		announced: counter("fairlead_l2_announcements_total", "Announcements of service addresses, and questions that test a link, that were sent unasked."),
		failed:    counter("fairlead_l2_failures_total", "Frames that could not be sent, and attempts to join groups that failed."),
	}
	if r == nil {
		return m, nil
	}
	gauge := func(name, help string, now func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(now()) })
	}
	held := gauge("fairlead_l2_addresses", "Service addresses that this node answers for.", answering)
	lacking := gauge("fairlead_l2_groups_missing", "Groups that could not be joined so far: neighbours may not be able to ask for their addresses.", missing)
	for _, c := range []prometheus.Collector{m.answered, m.announced, m.failed, held, lacking} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of l2: %w", err)
		}
	}
	return m, nil
}
