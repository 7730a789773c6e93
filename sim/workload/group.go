// SPDX-License-Identifier: Apache-2.0

package workload

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
