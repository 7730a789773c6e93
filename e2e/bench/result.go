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
	name  string
	unit  string
	run   func(t *bench) figures
	kube  bool // it needs an API server
	proxy bool // and kube-proxy
}

// benchmarks lists all, in the order in which they run.
func benchmarks() []benchmark {
	return []benchmark{
		{name: "fsm_apply_per_s", unit: "commands/s", run: applyPerSecond},
		{name: "snapshot_1m_s", unit: "s", run: snapshotSeconds},
		{name: "restore_1m_s", unit: "s", run: restoreSeconds},
		{name: "group_restore_100k_s", unit: "s", run: groupRestoreSeconds},
		{name: "apply_pause_ms", unit: "ms", run: applyPause},
		{name: "commit_latency_ms", unit: "ms", run: commitLatency},
		{name: "commit_throughput_per_s", unit: "commands/s", run: commitThroughput},
		{name: "failover_commit_ms", unit: "ms", run: failover},
		{name: "alloc_50000_s", unit: "s", run: allocate},
		{name: "cold_5000_services_s", unit: "s", run: coldStart, kube: true},
		{name: "controller_rss_mb", unit: "MB", run: controllerMemory, kube: true},
		{name: "agent_rss_mb", unit: "MB", run: agentMemory},
		{name: "endpoint_to_update_ms", unit: "ms", run: endpointToUpdate, kube: true},
		{name: "bind_5000_0ms_per_s", unit: "pods/s", run: bindAll(0), kube: true},
		{name: "bind_5000_10ms_per_s", unit: "pods/s", run: bindAll(10 * time.Millisecond), kube: true},
		{name: "pod_ready_to_bound_ms", unit: "ms", run: readyToBound, kube: true},
		{name: "api_writes_per_pod", unit: "writes", run: writesPerPod, kube: true},
		{name: "bind_300_failing_s", unit: "s", run: bindFailing, kube: true},
		{name: "steer_pps_ratio", unit: "ratio", run: steerPackets},
		{name: "nat_vs_kubeproxy_cps_ratio", unit: "ratio", run: natRate, kube: true, proxy: true},
		{name: "nat_update_ms", unit: "ms", run: natUpdate, kube: true, proxy: true},
		{name: "sock_connect_overhead_us", unit: "us", run: sockOverhead},
		{name: "sock_update_ms", unit: "ms", run: sockUpdate},
		{name: "sock_vs_direct_rps_ratio", unit: "ratio", run: sockRate},
		{name: "sock_vs_kubeproxy_cps_ratio", unit: "ratio", run: sockAgainst, kube: true, proxy: true},
		{name: "sock_sync_500000_s", unit: "s", run: sockSync},
		{name: "sock_policies_65535_s", unit: "s", run: sockPolicies},
		{name: "agents_1000_update_ms", unit: "ms", run: thousand},
		{name: "node_down_ms", unit: "ms", run: nodeDown},
		{name: "bgp_restart_ms", unit: "ms", run: bgpRestart},
		{name: "l2_failover_ms", unit: "ms", run: l2Failover},
		{name: "sim_virtual_s_per_core_s", unit: "ratio", run: simulated},
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
