// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// backendApps are the applications whose pods are backends. A node gives such a pod the lowest address that none of its
// own has, so that addresses come back soon.
var backendApps = []string{"edge1", "edge2"}

func backendVerbs() []Verb {
	return []Verb{{
		Name: "outside-pods", Text: "change how many pods there are to be bound, roll them out anew, end one, end all, or have one not be ready", Weight: 22,
		Parameters: []parameter.Parameter{
			parameter.OneOf("name", "of the application", backendApps...).Must(),
			parameter.OneOf("what", "scale without it", "scale", "roll", "evict", "clear", "ail"),
			replicas(), parameter.Duration("for", "how long it is not ready; 2s without it"),
		},
		Draw: func(d dice.Dice, _ Plan, s *Step) {
			s.With.Set("name", dice.Pick(d, "name", backendApps))
			what := dice.Pick(d, "what", []string{"scale", "roll", "evict", "evict", "clear", "ail", "ail"})
			s.With.Set("what", what)
			switch what {
			case "scale":
				s.With.Set("replicas", d.From("replicas", 0, 4))
			case "ail":
				s.With.Set("for", d.Time("for", 500*time.Millisecond, 5*time.Second))
			}
		},
		Do: func(c *Cluster, s Step) {
			name, all := s.With["name"], c.podsOf(s.With["name"])
			a := c.apps[name]
			switch what := s.With["what"]; {
			case what == "roll" && a != nil:
				a.revision++
				c.expect(name)
			case what == "clear":
				for _, p := range all {
					c.end(p)
				}
			case what == "evict" && len(all) > 0:
				c.end(all[0])
			case what == "ail" && len(all) > 0:
				c.ail(all[len(all)-1].Name, s.With.Duration("for", 2*time.Second))
			case what == "" || what == "scale":
				c.scale(name, s.With.Number("replicas", 2))
			}
		},
	}}
}

// lowest is the lowest address of a node that none of its pods has.
func (c *Cluster) lowest(node string) string {
	taken := map[string]bool{}
	for _, p := range c.pods {
		taken[p.address] = true
	}
	for n := 1; ; n++ {
		if a := fmt.Sprintf("10.245.%d.%d", slices.Index(c.o.Nodes, node), n); !taken[a] {
			return a
		}
	}
}
