// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// A pool may have addresses that the cluster itself gives out: it was written for another cluster, or the cluster grew into it. Nodes would
// send what pods ask of a ClusterIP, or of each other, to whoever had such an address of the pool. So nobody gets one of them anew; the pool
// gives out the others. Who has one keeps it, and is told.

// withheld is a prefix of the cluster of which a pool has addresses.
type withheld struct {
	prefix netip.Prefix
	whose  string // behind the prefix
}

// withholdFromPools finds what pools do not give out.
func (p *planner) withholdFromPools() {
	for prefix, whose := range p.clusterPrefixes {
		for _, pool := range p.pools {
			if pool.meets(prefix) && !slices.ContainsFunc(pool.withheld, func(w withheld) bool { return w.prefix == prefix }) {
				pool.withheld = append(pool.withheld, withheld{prefix, whose()})
			}
		}
	}
}

// meets tells whether a pool has addresses of a prefix.
func (pool *poolPlan) meets(prefix netip.Prefix) bool {
	return slices.ContainsFunc(pool.ranges, func(r fsm.Range) bool { return prefix.Contains(r.From) || r.Contains(prefix.Addr()) })
}

// withholds finds the prefix for which a pool does not give out an address; nil if it does.
func (pool *poolPlan) withholds(a netip.Addr) *withheld {
	for i := range pool.withheld {
		if w := &pool.withheld[i]; w.prefix.Contains(a) {
			return w
		}
	}
	return nil
}

// explainWithheld tells of pools with such addresses, and of Services that have one from before.
func (p *planner) explainWithheld() {
	if !slices.ContainsFunc(p.pools, func(pool *poolPlan) bool { return len(pool.withheld) > 0 }) {
		return
	}
	kept := map[fsm.PoolName][]string{}
	for _, s := range p.services {
		for _, c := range s.claims {
			pool := p.poolWith(c.address)
			if c.pool == "" || pool == nil {
				continue
			}
			if w := pool.withholds(c.address); w != nil {
				kept[pool.name] = append(kept[pool.name], fmt.Sprintf("%s of Service %s", c.address, s.id))
				p.explain(fsm.TableServices, string(s.id), WaitsForPolicy, fmt.Sprintf("%s of pool %s is in %s%s, and is kept since the Service has it from before; create the Service anew to have another one",
					c.address, pool.name, w.prefix, w.whose))
			}
		}
	}
	for _, pool := range p.pools {
		if len(pool.withheld) == 0 {
			continue
		}
		text := "it has addresses in " + pool.sayWithheld() + ": nobody gets one of these anew; take them out of the pool, or name them in its spec.exclude"
		if had := kept[pool.name]; len(had) > 0 {
			text += "; kept since they were given out before: " + fewOf(had)
		}
		p.explain(fsm.TablePools, string(pool.name), WaitsForOverlap, text)
	}
}

// sayWithheld names the prefixes.
func (pool *poolPlan) sayWithheld() string {
	var all []string
	for _, w := range pool.withheld {
		all = append(all, w.prefix.String()+w.whose)
	}
	return fewOf(all)
}

// sayWithheld tells a Service that lacks an address of a family what pools that it may use do not give out; empty if they give out everything.
func (p *planner) sayWithheld(s *wish, family world.Family) string {
	var all []string
	for _, pool := range p.pools {
		of := func(f world.Family) bool { return p.givesTo(pool, s, f) }
		if len(pool.withheld) > 0 && slices.ContainsFunc(familiesOf(family), of) {
			all = append(all, string(pool.name)+" ("+pool.withheld[0].prefix.String()+pool.withheld[0].whose+")")
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", but for addresses that the cluster itself has, of pool " + strings.Join(all[:min(few, len(all))], ", ")
}
