// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// report is the whole output.
type report struct {
	Machine machine  `json:"machine"`
	Results []result `json:"results"`
}

// result is the figure of one benchmark, of its largest size.
type result struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// N is how many samples value, p50 and p99 are of.
	N      int            `json:"n"`
	Value  float64        `json:"value"`
	P50    float64        `json:"p50"`
	P99    float64        `json:"p99"`
	Detail map[string]any `json:"detail"`
}

// benchmark measures one thing.
type benchmark struct {
	name string
	unit string
	run  func(t *bench) figures
}

// benchmarks lists all, in the order in which they run.
func benchmarks() []benchmark {
	return []benchmark{
		{"fsm_apply_per_s", "commands/s", applyPerSecond},
		{"snapshot_1m_s", "s", snapshotSeconds},
		{"restore_1m_s", "s", restoreSeconds},
		{"apply_pause_ms", "ms", applyPause},
		{"commit_latency_ms", "ms", commitLatency},
		{"commit_throughput_per_s", "commands/s", commitThroughput},
		{"failover_commit_ms", "ms", failover},
		{"cold_5000_services_s", "s", coldStart},
		{"steer_pps_ratio", "ratio", steerPackets},
		{"node_down_ms", "ms", nodeDown},
	}
}

// figures are the samples of a benchmark; value is their median unless it says otherwise.
type figures struct {
	samples []float64
	value   *float64
	detail  map[string]any
}

func (f figures) result(name, unit string) result {
	sorted := slices.Sorted(slices.Values(f.samples))
	r := result{
		Name: name, Unit: unit, N: len(sorted), P50: quantile(sorted, 0.50), P99: quantile(sorted, 0.99), Detail: f.detail,
	}
	r.Value = r.P50
	if f.value != nil {
		r.Value = *f.value
	}
	return r
}

// quantile is the smallest sample that at least a share q of the samples does not exceed; 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
