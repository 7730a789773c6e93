// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// groupVerbs are what people tell the group itself.
func groupVerbs() []Verb {
	return []Verb{
		{
			Name: "release", Text: "an operator releases what is held back", Weight: 3,
			Do: func(c *Cluster, _ Step) {
				if c.o.Operator != nil {
					c.o.Operator.Release()
				}
			},
		},
		{
			Name: "set-aside", Text: "an operator has new flows go past a node (`fairlead drain node`), for a while or for good", Weight: 4,
			Parameters: []parameter.Parameter{parameter.Machines("node", "its name").Must(), parameter.Duration("for", "how long; for good without it")},
			Drawn:      func(p Plan) bool { return p.Segments > 0 },
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("node", dice.Pick(d, "node", p.Nodes))
				if d.Chance("ends", 70) {
					s.With.Set("for", d.Time("for", time.Second, 20*time.Second).String())
				}
			},
			Do: func(c *Cluster, s Step) {
				if c.o.Operator == nil {
					return
				}
				c.o.Operator.SetAside(s.With["node"], true)
				if d := s.With.Duration("for", 0); d > 0 {
					c.world.After(d, func() { c.o.Operator.SetAside(s.With["node"], false) })
				}
			},
		},
		{
			Name: "move", Text: "an operator has the traffic of a Service come in by a node (`fairlead move`), for a while or for good", Weight: 4,
			Parameters: []parameter.Parameter{name(), parameter.Machines("node", "its name").Must(), parameter.Duration("for", "how long; for good without it")},
			Drawn:      func(p Plan) bool { return p.Segments > 0 },
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyName(d))
				s.With.Set("node", dice.Pick(d, "node", p.Nodes))
				if d.Chance("ends", 50) {
					s.With.Set("for", d.Time("for", time.Second, 20*time.Second).String())
				}
			},
			Do: func(c *Cluster, s Step) {
				if c.o.Operator == nil {
					return
				}
				service := "default/" + s.With["name"]
				c.o.Operator.Move(service, s.With["node"])
				if d := s.With.Duration("for", 0); d > 0 {
					c.world.After(d, func() { c.o.Operator.Move(service, "") })
				}
			},
		},
		{
			Name: "backends", Text: "somebody changes what is bound to outside load balancers", Weight: 20,
			Able: func(p Plan) bool { return p.Balancers > 0 },
			Do: func(c *Cluster, _ Step) {
				if c.o.Backends != nil {
					c.o.Backends.Act()
				}
			},
		},
	}
}
