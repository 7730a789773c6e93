// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// memoryRest is how long processes are left alone before their memory is read, so that what they needed only meanwhile can
// be given back.
const memoryRest = time.Minute

// controllerMemory gives the resident memory of a member that reads the large cluster from a folder, once every address is
// allocated and announced to a switch, and nothing has changed for a minute. The member is a group of its own, so that it
// does all that there is to do. What one uses that peers with nobody, and one beside an API server, is in detail.
func controllerMemory(t *bench) figures {
	l := lab.New(t, lab.Options{Log: "warn", Stopped: true, Members: 1})
	putLarge(l.Manifests, largeServices)
	g := &group{Lab: l, t: t}
	detail := map[string]any{"services": largeServices, "endpoints": largeServices * largeEndpoints, "routes": largeRoutes(l)}
	t.progressf("starting a member for %d Services", largeServices)
	detail["all_routes_in_switch_s"] = g.startAndWait("every route in the switch", func() error { return everyRoute(l) })
	detail["processes_then"] = g.usages()
	time.Sleep(memoryRest)
	used := g.usages()
	detail["processes"] = used
	killAll(l)
	detail["peers_with_nobody"] = memoryWithoutPeers(t)
	detail["kubernetes"] = memoryBesideAPI(t)
	return figures{samples: []float64{used[l.Members[0].Name].RSSMB}, detail: detail}
}

// memoryWithoutPeers is for clusters whose nodes announce, by BGP or on their segment.
func memoryWithoutPeers(t *bench) map[string]any {
	l := lab.New(t, lab.Options{Log: "warn", Stopped: true, Members: 1})
	l.Manifests.Remove("peer-bird.yaml")
	putLarge(l.Manifests, largeServices)
	g := &group{Lab: l, t: t}
	t.progressf("starting a member that peers with nobody for %d Services", largeServices)
	out := map[string]any{"all_addresses_s": g.startAndWait("an address for every Service", func() error {
		if n := allocated(l.Members[0]); n != largeServices {
			return fmt.Errorf("%d Services with an address, want %d", n, largeServices)
		}
		return nil
	})}
	time.Sleep(memoryRest)
	out["processes"] = g.usages()
	killAll(l)
	return out
}

// killAll has what a lab runs make room for the next one.
func killAll(l *lab.Lab) {
	for _, m := range l.Members {
		m.Kill()
	}
	l.Bird.Kill()
}
