// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
)

// memoryBesideAPI is what a member uses that learns the large cluster from an API server instead of a folder: once every address is
// announced, once the status of every Service shows it, and a minute later.
func memoryBesideAPI(t *bench) map[string]any {
	api := startBareAPI(t, kubetest.Options{})
	for n := range largeNodes {
		api.node(largeNode(n))
	}
	api.seed(0, largeServices, func(i int) []string { return []string{lab.VIP(i).String()} }, largeSlice)
	l := lab.New(t, lab.Options{Log: "warn", Stopped: true, Members: 1, Kubeconfig: api.Kubeconfig()})
	g := &group{Lab: l, t: t}
	t.progressf("starting a member beside an API server with %d Services", largeServices)
	out := map[string]any{"all_routes_in_switch_s": g.startAndWait("every route in the switch", func() error { return everyRoute(l) })}
	out["processes_then"] = g.usages()
	begin := time.Now()
	out["writes_idle_30s"] = api.idleWrites(largeServices)
	out["all_shown_after_s"], out["processes_shown"] = (time.Since(begin) - idleFor).Seconds(), g.usages()
	time.Sleep(memoryRest)
	out["processes"] = g.usages()
	return out
}

// largeSlice is the endpoints of Service i of the large cluster.
func largeSlice(i int) *discoveryv1.EndpointSlice {
	s := emptySlice(i)
	for e := range largeEndpoints {
		address, node := largeEndpoint(i, e)
		name, _ := largeNode(node)
		s.Endpoints = append(s.Endpoints, endpoint(address, name, true))
	}
	return s
}
