// SPDX-License-Identifier: Apache-2.0

package workload

import "fairlead.io/fairlead/sim/scenario/parameter"

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
			Name: "set-aside", Text: "an operator has new flows go past a node (`fairlead drain node`), for a while or for good", // not drawn: named scenarios have it
			Parameters: []parameter.Parameter{parameter.Machines("node", "its name").Must(), parameter.Duration("for", "how long; for good without it")},
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
