// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

// blockVerbs are about the addresses of the block, which switches are told of together while all of them lead to the same nodes.
func blockVerbs() []Verb {
	able := func(p Plan) bool { return p.Aggregate > 0 }
	place := parameter.Number("place", "which of the block's addresses, from 0", 0, stage.BlockSize-1).Must()
	lasts := parameter.Duration("for", "how long; for good without it")
	drawPlace := func(d dice.Dice, _ Plan, s *Step) {
		s.With.Set("place", d.Below("place", stage.BlockSize))
		if d.Chance("ends", 85) {
			s.With.Set("for", d.Time("for", 500*time.Millisecond, 12*time.Second))
		}
	}
	return []Verb{
		{
			Name: "vacate", Text: "delete the Service that has an address of the block, for a while or for good", Weight: 12, Able: able,
			Parameters: []parameter.Parameter{place, lasts}, Draw: drawPlace,
			Do: func(c *Cluster, s Step) {
				i := s.With.Number("place", 0)
				c.deleteService(inBlock(i))
				c.endOf(s, func() { c.createInBlock(i) })
			},
		},
		{
			Name: "let", Text: "have an address of the block be another Service's, at the nodes of its pods only, for a while or for good", Weight: 8, Able: able,
			Parameters: []parameter.Parameter{place, lasts}, Draw: drawPlace,
			Do: func(c *Cluster, s Step) {
				i := s.With.Number("place", 0)
				c.deleteService(inBlock(i))
				c.createService(Step{With: parameter.Values{"name": tenant(i), "replicas": "2", "policy": "Local", "address": stage.BlockAddress(i).String()}})
				c.endOf(s, func() {
					c.deleteService(tenant(i))
					c.createInBlock(i)
				})
			},
		},
		{
			Name: "narrow", Text: "have an address of the block lead to nodes with endpoints only, for a while or for good", Weight: 6, Able: able,
			Parameters: []parameter.Parameter{place, lasts}, Draw: drawPlace,
			Do: func(c *Cluster, s Step) {
				name := inBlock(s.With.Number("place", 0))
				hops := func(which string) {
					c.changeService(name, func(o *corev1.Service) { o.SetAnnotations(with(o.GetAnnotations(), convert.AnnotationNextHops, which)) })
				}
				hops("endpoints")
				c.endOf(s, func() { hops("all") })
			},
		},
		{
			Name: "aggregate", Text: "change how long the prefixes are that addresses are announced by", Weight: 3, Able: able,
			Parameters: []parameter.Parameter{parameter.Number("bits", "aggregationLength; each address by itself without it", 20, 32)},
			Draw: func(d dice.Dice, _ Plan, s *Step) {
				if bits := dice.Pick(d, "bits", []int{0, 29, 29, 30, 30, 31}); bits != 0 {
					s.With.Set("bits", bits)
				}
			},
			Do: func(c *Cluster, s Step) {
				c.configure("BGPAdvertisement", "all", func(spec map[string]any) {
					delete(spec, "aggregationLength")
					if bits := s.With.Number("bits", 0); bits != 0 {
						spec["aggregationLength"] = int64(bits)
					}
				})
			},
		},
	}
}

// inBlock is the name of the Service that has the i-th address of the block, counted from 0, and tenant of the one that may have
// it in its place.
func inBlock(i int) string { return fmt.Sprint("block", i+1) }
func tenant(i int) string  { return fmt.Sprint("tenant", i+1) }

func (c *Cluster) createInBlock(i int) {
	c.createService(Step{With: parameter.Values{
		"name": inBlock(i), "replicas": fmt.Sprint(1 + i%2), "address": stage.BlockAddress(i).String(), "hops": "all",
	}})
}

// endOf does what a step does at its end, unless it is for good.
func (c *Cluster) endOf(s Step, do func()) {
	if d := s.With.Duration("for", 0); d > 0 {
		c.world.After(d, do)
	}
}
