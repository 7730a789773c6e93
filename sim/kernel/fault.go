// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"maps"
	"slices"

	"fairlead.io/fairlead/sim/kernel/message"
)

// Fault makes calls fail.
type Fault struct {
	Errno string  // such as EBUSY or ENOBUFS
	Share float64 // of the calls, from 0 to 1
	Reads bool    // also those that only read
	// Sockets has only those fail that add rows to the tables of programs at sockets.
	Sockets bool
}

// Fail lets calls fail until the function that it returns is called.
func (k *Kernel) Fail(f Fault) (heal func()) {
	k.faults = append(k.faults, &f)
	return func() { k.faults = slices.DeleteFunc(k.faults, func(o *Fault) bool { return o == &f }) }
}

// fails gives the errno that a call fails with, if it does.
func (k *Kernel) fails(r message.Request) string {
	if r.Sockets != nil && len(r.Sockets.Cgroups) > 0 {
		return "" // they are folders, and no calls about tables
	}
	for _, f := range k.faults {
		reads := r.Dump != nil || r.Watch || r.Sockets != nil && r.Sockets.Read || r.Tunnel != nil && (r.Tunnel.Read || r.Tunnel.Ways != nil)
		if f.Sockets && (r.Sockets == nil || r.Sockets.Adds() == 0) {
			continue
		}
		if (f.Reads || !reads) && k.random.Float64() < f.Share {
			return f.Errno
		}
	}
	return ""
}

// Change does what somebody other than us does to rules, routes and tables. It returns an errno, empty if it was done.
func (k *Kernel) Change(r message.Request) string {
	switch {
	case !k.up:
		return "ENODEV"
	case r.Rule != nil:
		return k.setRule(*r.Rule, !r.Delete, false)
	case r.Route != nil:
		return k.setRoute(*r.Route, r, false)
	}
	return k.transact(r.Table, false)
}

// Meddle takes away something of ours, drawn at random, and tells what it was: nothing if nothing is there.
func (k *Kernel) Meddle() string {
	var all []func() string
	for _, r := range k.rules {
		if r.Protocol == message.Protocol {
			all = append(all, func() string { k.setRule(r, false, false); return "rule " + ruleText(r) })
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(k.routes), compareRoutes) {
		if r.Protocol == message.Protocol {
			all = append(all, func() string {
				k.setRoute(r, message.Request{Delete: true}, false)
				return "route " + routeText(r)
			})
		}
	}
	for _, name := range []string{message.NATTable, message.SteerTable, message.ProxyTable} {
		if t := k.tables[name]; t != nil {
			all = append(all, k.meddleTable(name, t)...)
		}
	}
	if all = append(all, k.meddleTunnel()...); len(all) == 0 {
		return ""
	}
	k.by = "hand"
	defer func() { k.by = "" }()
	return all[k.random.IntN(len(all))]()
}

// meddleTable lists ways to damage a table.
func (k *Kernel) meddleTable(name string, t *message.Table) (all []func() string) {
	all = append(all, func() string {
		k.transact([]message.Op{{Do: "delete-table", Table: name}}, false)
		return "table " + name
	})
	for _, chain := range slices.Sorted(maps.Keys(t.Chains)) {
		all = append(all, func() string {
			k.transact([]message.Op{{Do: "flush-chain", Table: name, Chain: &message.Chain{Name: chain}}}, false)
			return fmt.Sprintf("rules of chain %s in %s", chain, name)
		})
	}
	for _, set := range slices.Sorted(maps.Keys(t.Elements)) {
		for _, key := range slices.Sorted(maps.Keys(t.Elements[set])) {
			if t.Sets[set].Interval {
				continue // half a range is not what anybody deletes
			}
			e := message.Element{Set: set, Key: key, Data: t.Elements[set][key]}
			all = append(all, func() string {
				k.transact([]message.Op{{Do: "delete-elements", Table: name, Elements: []message.Element{e}}}, false)
				return fmt.Sprintf("element %s of %s in %s", key, set, name)
			})
		}
	}
	return all
}
