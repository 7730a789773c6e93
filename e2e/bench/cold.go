// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

const (
	coldServices = 5000
	coldHops     = 2
	coldRuns     = 3
)

// coldStart starts three members with empty folders beside a switch, and takes the time until the switch has both next
// hops of every service from every member.
func coldStart(t *bench) figures {
	var f figures
	var last map[string]any
	for range coldRuns {
		took, detail := coldRun(t)
		f.samples = append(f.samples, took)
		last = detail
	}
	f.detail = last
	f.detail["kubernetes"] = coldFromAPI(t)
	return f
}

func coldRun(t *bench) (seconds float64, detail map[string]any) {
	l := lab.New(t, lab.Options{Log: "warn", Stopped: true})
	g := &group{Lab: l, t: t}
	l.Manifests.Node(1, true)
	l.Manifests.Node(2, true)
	var text strings.Builder
	for i := range coldServices {
		text.WriteString(lab.Service(i, 1, 2))
		text.WriteString("---\n")
		if (i+1)%100 == 0 {
			l.Manifests.Put(fmt.Sprintf("services-%02d.yaml", i/100), text.String())
			text.Reset()
		}
	}
	t.progressf("starting three members for %d services", coldServices)
	begin := time.Now()
	for _, m := range l.Members {
		m.Start()
	}
	first, half := 0.0, 0.0
	l.EventuallyWithin("every route in the switch", 5*time.Minute, func() error {
		routes, networks := countRoutes(l.Bird.Command("show route count"))
		now := time.Since(begin).Seconds()
		if first == 0 && networks > 0 {
			first = now
		}
		if half == 0 && networks == coldServices && routes >= coldServices*coldHops {
			half = now
		}
		if want := coldServices * coldHops * len(l.Members); networks != coldServices || routes != want {
			return fmt.Errorf("%d routes for %d networks, want %d for %d", routes, networks, want, coldServices)
		}
		return nil
	})
	seconds = time.Since(begin).Seconds()
	for _, e := range l.Bird.ECMP() {
		if len(e.NextHops) != coldHops {
			t.Fatalf("%s has next hops %v", e.Prefix, e.NextHops)
		}
	}
	detail = map[string]any{
		"first_route_s": first, "as_many_routes_as_hops_s": half, "processes": g.usages(), "leader": g.Leader().Name,
	}
	for _, m := range l.Members {
		m.Kill()
	}
	l.Bird.Kill()
	return seconds, detail
}

// countLine is how BIRD counts: "30000 of 30000 routes for 5000 networks in table master4".
var countLine = regexp.MustCompile(`(\d+) of \d+ routes for (\d+) networks in table`)

// countRoutes sums up the tables.
func countRoutes(answer string) (routes, networks int) {
	for _, m := range countLine.FindAllStringSubmatch(answer, -1) {
		r, _ := strconv.Atoi(m[1]) // digits only, by the expression
		n, _ := strconv.Atoi(m[2])
		routes, networks = routes+r, networks+n
	}
	return routes, networks
}
