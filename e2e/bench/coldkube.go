// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// coldFromAPI starts three empty members beside an API server that holds all Services already, takes the seconds until
// the switch has every path from each of them, then kills all three at once and starts them again: no network may be
// missing at the switch at any look meanwhile.
func coldFromAPI(t *bench) map[string]any {
	api := startAPI(t)
	api.fill(0, coldServices)
	l := lab.New(t, lab.Options{Log: "warn", Stopped: true, Kubeconfig: api.Kubeconfig()})
	g := &group{Lab: l, t: t}
	t.progressf("starting three members beside an API server with %d Services", coldServices)
	all := coldServices * coldHops * len(l.Members)
	cold := g.startAndWait("every route in the switch", func() error {
		if routes, networks := countRoutes(l.Bird.Command("show route count")); networks != coldServices || routes != all {
			return fmt.Errorf("%d routes for %d networks, want %d for %d", routes, networks, all, coldServices)
		}
		return nil
	})
	used := g.usages()
	idle := api.idleWrites(coldServices)
	t.progressf("killing all three, and starting them again")
	fewest, before := coldServices, l.Bird.Sessions()
	for _, m := range l.Members {
		m.Kill()
	}
	warm := g.startAndWait("fresh sessions with every route", func() error {
		routes, networks := countRoutes(l.Bird.Command("show route count"))
		fewest = min(fewest, networks)
		for name, s := range l.Bird.Sessions() {
			if !s.Established || s.Opened == before[name].Opened {
				return fmt.Errorf("no new session with %s", name)
			}
		}
		if routes != all {
			return fmt.Errorf("%d routes, want %d", routes, all)
		}
		return nil
	})
	if fewest < coldServices {
		t.Errorf("only %d of %d networks were at the switch while all members started again", fewest, coldServices)
	}
	return map[string]any{
		"start_s": cold, "restart_s": warm, "networks_withdrawn_at_restart": coldServices - fewest,
		"processes_after_start": used, "processes_after_restart": g.usages(), "api_processes": api.usages(),
		"writes_idle_30s": idle,
	}
}

// startAndWait starts all members, and gives the seconds until a condition holds.
func (g *group) startAndWait(what string, condition func() error) float64 {
	begin := time.Now()
	for _, m := range g.Members {
		m.Start()
	}
	g.EventuallyWithin(what, 5*time.Minute, condition)
	return time.Since(begin).Seconds()
}
