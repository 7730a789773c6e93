// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

var drivers = Who{Roles: []Role{Driver}, Least: 1}

// driverKinds are what may be wrong with drivers of outside load balancers: those of package balancer, each as a kind
// of its own, and hands at the balancers.
func driverKinds() (out []Kind) {
	for _, x := range balancer.Faults() {
		out = append(out, Kind{
			Name: "driver-" + string(x), Text: driverTexts[x],
			Weight: 3, Least: time.Second, Most: 12 * time.Second, On: drivers, Excuses: onThem,
			Parameters: driverParameters(x),
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("drivers", c.Drivers, 1)
				if d.Chance("some calls", 50) {
					f.With.Set("share", dice.Pick(d, "share", []string{"0.5", "0.2"}))
				}
				if d.Chance("delay", 50) {
					f.With.Set("delay", d.Time("delay", 200*time.Millisecond, 3*time.Second))
				}
				if hows := driverHows[x]; len(hows) > 0 && d.Chance("how", 60) {
					f.With.Set("how", dice.Pick(d, "which how", hows))
				}
			},
			Begin: func(b *Backstage, f Fault) func() {
				scope := balancer.Scope{Share: f.With.Share("share", 0), Delay: f.With.Duration("delay", 0), How: f.With["how"]}
				return each(f.On, func(name string) func() { return b.driver(name).Begin(x, scope) })
			},
		})
	}
	return append(out, Kind{
		Name: "balancer-hand", Text: "somebody adds entries of his own to a load balancer by hand, and takes them away at the end",
		Weight: 4, Least: time.Second, Most: 10 * time.Second, On: drivers,
		Excuses: func(_ Cast, f Fault) []string { return slashed(f.On, "entries") },
		Draw:    func(d dice.Dice, c Cast, f *Fault) { f.On = d.Some("drivers", c.Drivers, 1) },
		Begin: func(b *Backstage, f Fault) func() {
			address := fmt.Sprintf("192.0.2.%d:8080", b.random(f).IntN(250)+1)
			return each(f.On, func(name string) func() {
				d := b.driver(name)
				var ends []func()
				for _, at := range d.Balancers() {
					if d.AddByHand(at, address) {
						ends = append(ends, func() { d.RemoveByHand(at, address) })
					}
				}
				return together(ends)
			})
		},
	})
}

var driverTexts = map[balancer.Fault]string{
	balancer.Away:    "drivers do not answer (how: silent), listen to nobody (refused) or are unavailable",
	balancer.Slow:    "drivers are slow",
	balancer.Late:    "drivers do what they are asked after their callers have given up",
	balancer.Mute:    "connections break after drivers have done what they were asked",
	balancer.ErrorOn: "drivers answer that it failed; with how: status, half of it was done",
	balancer.Busy:    "drivers ask to be asked again",
	balancer.Twice:   "drivers do everything twice",
}

var driverHows = map[balancer.Fault][]string{
	balancer.Away: hows, balancer.ErrorOn: {"status"},
}

func driverParameters(x balancer.Fault) []parameter.Parameter {
	all := []parameter.Parameter{parameter.Share("share", "of calls; all without it"), parameter.Duration("delay", "2s without it")}
	if hows := driverHows[x]; len(hows) > 0 {
		all = append(all, parameter.OneOf("how", "in what way", hows...))
	}
	return all
}

// driver finds a driver.
func (b *Backstage) driver(name string) *balancer.Driver {
	for _, d := range b.Balancers() {
		if d.Name() == name {
			return d
		}
	}
	return nil
}
