// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// accountOptions are what an account goes by.
type accountOptions struct {
	Every time.Duration         // how often each client asks
	Nodes map[netip.Addr]string // by the addresses that routes lead to
}

// account is what was seen in one run, address by address. It knows nothing but events.
type account struct {
	o      accountOptions
	owners map[netip.AddrPort]string // Services, by what they offer
	seen   map[place]*seen
	routes map[route]forwarding
	turns  []turn        // of the moment turned
	turned time.Duration // when a switch last did something differently
	began  time.Duration // when the mishap did; never before
	ended  time.Duration
	led    []moment // who began to lead since
	until  time.Duration
}

const never = time.Duration(1<<63 - 1)

// place is an address of a Service.
type place struct {
	service string
	address netip.Addr
}

func (p place) compare(q place) int {
	return cmp.Or(strings.Compare(p.service, q.service), p.address.Compare(q.address))
}

// seen is what clients saw of one place.
type seen struct {
	sent, failed int            // since the mishap began
	early        map[string]int // failed before, and why
	unwanted     int            // not served when nothing could have
	whys         map[string]int
	all          gaps
	by           map[string]*gaps // by switch
	where        map[string]*shares
	last         time.Duration // when one failed last; 0: none
	steps        []moment
}

// moment is something that happened to a route or the group, some time after the mishap.
type moment struct {
	after time.Duration
	text  string
}

// The times that are told apart.
const (
	before = "before"
	during = "during"
	after  = "after"
)

// shares counts who served.
type shares struct{ nodes, pods map[string]int }

// gaps finds the longest time in which requests failed. Failures belong to one gap unless they are joint apart: with
// several ways to an address, only those that take the broken one fail.
type gaps struct {
	open, last time.Duration
	failed     int
	longest    gap
}

// gap is a time in which requests failed.
type gap struct {
	from, to time.Duration
	failed   int
}

func (g gap) length() time.Duration { return g.to - g.from }

const joint = 500 * time.Millisecond

// fail takes in a failure.
func (g *gaps) fail(at, every time.Duration) {
	if g.failed == 0 || at-g.last > joint {
		g.open, g.failed = at, 0
	}
	g.failed++
	g.last = at
	if now := (gap{g.open, at + every, g.failed}); now.length() > g.longest.length() {
		g.longest = now
	}
}

func newAccount(o accountOptions) *account {
	return &account{
		o: o, owners: map[netip.AddrPort]string{}, seen: map[place]*seen{}, routes: map[route]forwarding{}, began: never, ended: never,
	}
}

func (a *account) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Object:
		a.object(x)
	case event.FaultBegan:
		a.began = min(a.began, e.At)
	case event.FaultEnded:
		a.ended = e.At
	case event.Flow:
		a.flow(e.At, x)
	case event.Forwarding:
		a.forward(e.At, x)
	case event.Leading:
		if x.On && e.At > a.began {
			a.led = append(a.led, moment{e.At - a.began, x.Process})
		}
	}
}

// object learns whose an address is.
func (a *account) object(x event.Object) {
	var s struct {
		Spec struct {
			ExternalIPs []string `json:"externalIPs"`
			Ports       []struct {
				Port uint16 `json:"port"`
			} `json:"ports"`
		} `json:"spec"`
		Status struct {
			LoadBalancer struct {
				Ingress []struct {
					IP string `json:"ip"`
				} `json:"ingress"`
			} `json:"loadBalancer"`
		} `json:"status"`
	}
	if x.Kind != "Service" || json.Unmarshal(x.JSON, &s) != nil {
		return
	}
	all := s.Spec.ExternalIPs
	for _, in := range s.Status.LoadBalancer.Ingress {
		all = append(all, in.IP)
	}
	for _, text := range all {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // members say so
		}
		for _, p := range s.Spec.Ports {
			a.owners[netip.AddrPortFrom(ip, p.Port)] = x.Namespace + "/" + x.Name
		}
	}
}

// phase tells which time it is.
func (a *account) phase(at time.Duration) string {
	switch {
	case at < a.began:
		return before
	case at < a.ended:
		return during
	}
	return after
}

func (a *account) at(p place) *seen {
	s := a.seen[p]
	if s == nil {
		s = &seen{whys: map[string]int{}, early: map[string]int{}, by: map[string]*gaps{}, where: map[string]*shares{}}
		for _, name := range []string{before, during, after} {
			s.where[name] = &shares{map[string]int{}, map[string]int{}}
		}
		a.seen[p] = s
	}
	return s
}

// flow takes in a request.
func (a *account) flow(at time.Duration, f event.Flow) {
	s := a.at(place{a.owners[netip.AddrPortFrom(f.Address, f.Port)], f.Address})
	phase := a.phase(at)
	if phase != before {
		s.sent++
	}
	switch {
	case f.Served:
		s.where[phase].nodes[f.Node]++
		s.where[phase].pods[f.Pod]++
		return
	case !f.Wanted:
		s.unwanted++
		return
	case phase == before:
		s.early[f.Why]++
		return
	}
	s.failed++
	s.whys[f.Why]++
	s.last = at
	s.all.fail(at, a.o.Every/clients)
	if f.Switch == "" {
		return // it came to none
	}
	g := s.by[f.Switch]
	if g == nil {
		g = &gaps{}
		s.by[f.Switch] = g
	}
	g.fail(at, a.o.Every/clients)
}

// finish notes when the run ended.
func (a *account) finish(at time.Duration) {
	a.tellTurns()
	a.until = at
}

// places lists what was asked, in order.
func (a *account) places() []place { return slices.SortedFunc(maps.Keys(a.seen), place.compare) }

// mostOften is what requests failed for most often.
func mostOften(whys map[string]int) string {
	all := slices.SortedFunc(maps.Keys(whys), func(x, y string) int {
		return cmp.Or(cmp.Compare(whys[y], whys[x]), strings.Compare(x, y))
	})
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// step notes something about a place's route, unless there is too much of it.
func (s *seen) step(after time.Duration, format string, args ...any) {
	if len(s.steps) < mostSteps {
		s.steps = append(s.steps, moment{after, fmt.Sprintf(format, args...)})
	}
}

const mostSteps = 60
