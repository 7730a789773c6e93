// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

func configurationVerbs() []Verb {
	return []Verb{
		{
			Name: "grow", Text: "add addresses to the pool", Weight: 3,
			Parameters: []parameter.Parameter{parameter.Number("part", "which of 16 further ranges", 0, 15)},
			Draw:       func(d dice.Dice, _ Plan, s *Step) { s.With.Set("part", d.Below("part", 16)) },
			Do: func(c *Cluster, s Step) {
				more := fmt.Sprintf("198.51.100.%d/28", 16*s.With.Number("part", 0))
				c.configure("IPAddressPool", "pool", func(spec map[string]any) {
					all, _ := spec["addresses"].([]any)
					for _, a := range all {
						if a == any(more) {
							return
						}
					}
					spec["addresses"] = append(all, more)
				})
			},
		},
		{
			Name: "colour", Text: "change the community that is announced with addresses", Weight: 3,
			Parameters: []parameter.Parameter{parameter.Number("community", "the second half of it, 1 without it", 0, 65535)},
			Draw:       func(d dice.Dice, _ Plan, s *Step) { s.With.Set("community", d.Below("community", 100)) },
			Do: func(c *Cluster, s Step) {
				c.configure("BGPAdvertisement", "all", func(spec map[string]any) {
					spec["communities"] = []any{fmt.Sprintf("%d:%d", stage.OurASN, s.With.Number("community", 1))}
				})
			},
		},
		{
			Name: "withhold", Text: "have the BGPAdvertisement be about another pool, for a while or for good: addresses go nowhere",
			Parameters: []parameter.Parameter{parameter.Duration("for", "how long; for good without it")},
			Do: func(c *Cluster, s Step) {
				about := func(pools []any) {
					c.configure("BGPAdvertisement", "all", func(spec map[string]any) { spec["ipAddressPools"] = pools })
				}
				about([]any{"another"})
				c.endOf(s, func() { about(nil) })
			},
		},
	}
}

// configure changes the spec of one of our custom resources.
func (c *Cluster) configure(kind, name string, change func(spec map[string]any)) {
	c.configureIn(kind, stage.System, name, change)
}

// configureIn changes the spec of a custom resource.
func (c *Cluster) configureIn(kind, namespace, name string, change func(spec map[string]any)) {
	_, err := c.kube.Change("user", kind, namespace, name, func(o kube.Object) {
		object := o.(*unstructured.Unstructured).Object
		spec, ok := object["spec"].(map[string]any)
		if !ok {
			spec = map[string]any{}
			object["spec"] = spec
		}
		change(spec)
	})
	c.may(err)
}
