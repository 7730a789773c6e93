// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// allocate starts three empty members beside a folder with the large cluster, and takes the time until each of them has an
// address for every Service in its record. The next hops of all addresses are recorded and announced meanwhile.
func allocate(t *bench) figures {
	l := lab.New(t, lab.Options{Log: "warn", Stopped: true})
	g := &group{Lab: l, t: t}
	putLarge(l.Manifests, largeServices)
	t.progressf("starting three members for %d Services", largeServices)
	first := 0.0
	begin := time.Now()
	seconds := g.startAndWait("an address for every Service", func() error {
		for _, m := range l.Members {
			n := allocated(m)
			if first == 0 && n > 0 {
				first = time.Since(begin).Seconds()
			}
			if n != largeServices {
				return fmt.Errorf("%s has %d Services with an address, want %d", m.Name, n, largeServices)
			}
		}
		return nil
	})
	used := g.usages()
	l.EventuallyWithin("every route in the switch", 5*time.Minute, func() error { return everyRoute(l) })
	return figures{samples: []float64{seconds}, detail: map[string]any{
		"services": largeServices, "endpoints": largeServices * largeEndpoints, "first_s": first, "processes": used,
		"routes": largeRoutes(l), "every_route_in_switch_s": time.Since(begin).Seconds(), "processes_then": g.usages(), "leader": g.Leader().Name,
	}}
}

// allocated is how many Services have an address in a member's record; none while it does not say.
func allocated(m *lab.Member) int {
	n, _ := strconv.ParseFloat(metric(m.Address+":7480", `fairlead_services{pending=""}`), 64)
	return int(n)
}

// metric is one of the metrics of the process that tells them at an address and port, empty if it has none of that name and
// labels.
func metric(address, name string) string {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
