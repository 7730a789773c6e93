// SPDX-License-Identifier: Apache-2.0

package records

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

// kind joins a kind of the API with the table that it is read from.
type kind struct {
	records.Kind
	table fsm.Table
	// beside are further tables that its documents show something of.
	beside []fsm.Table
	render func(*renderer, fsm.Record) any
	// trail is nil for rows that keep no history.
	trail func(fsm.Record) fsm.Trail
	// alias finds rows by what is no key; optional.
	alias func(v *fsm.View, name string) []fsm.Record
}

// of makes a kind out of functions on one type of row.
func of[R fsm.Record](render func(*renderer, R) any, trail func(R) fsm.Trail, beside ...fsm.Table) kind {
	var row R
	k := kind{
		table: row.Table(), beside: beside,
		render: func(r *renderer, row fsm.Record) any { return render(r, row.(R)) },
	}
	if trail != nil {
		k.trail = func(row fsm.Record) fsm.Trail { return trail(row.(R)) }
	}
	return k
}

func (k kind) foundBy(alias func(v *fsm.View, name string) []fsm.Record) kind {
	k.alias = alias
	return k
}

// tables are all that can change a document of the kind.
func (k kind) tables() []fsm.Table { return append([]fsm.Table{k.table}, k.beside...) }

// kindNamed finds a kind by its name or an alias.
func kindNamed(name string) (kind, bool) {
	found, ok := records.Find(name)
	if !ok {
		return kind{}, false
	}
	k := byName(found.Name)
	k.Kind = found
	return k, true
}

func byName(name string) kind {
	hops := []fsm.Table{fsm.TableNodes, fsm.TableMembers, fsm.TableGroup}
	switch name {
	case "services":
		return of((*renderer).service, func(s *fsm.Service) fsm.Trail { return s.History },
			append(hops, fsm.TableAllocations, fsm.TableRoutes)...)
	case "pools":
		return of((*renderer).pool, nil, fsm.TableAllocations, fsm.TableAdvertisements)
	case "allocations":
		return of((*renderer).allocation, nil).foundBy(ownersOf)
	case "drivers":
		return of((*renderer).driver, func(d *fsm.Driver) fsm.Trail { return d.History }, fsm.TableBalancers)
	case "loadbalancers":
		return of((*renderer).balancer, func(l *fsm.LoadBalancer) fsm.Trail { return l.History }, fsm.TableBindings)
	case "bindings":
		return of((*renderer).binding, func(b *fsm.Binding) fsm.Trail { return b.History })
	case "operations":
		return of((*renderer).operation, nil)
	case "routes":
		return of((*renderer).route, func(r *fsm.Route) fsm.Trail { return r.History },
			append(hops, fsm.TableAllocations)...).foundBy(routeOf)
	case "peers":
		return of((*renderer).peer, nil)
	case "advertisements":
		return of((*renderer).advertisement, nil)
	case "l2advertisements":
		return of((*renderer).l2Advertisement, nil)
	case "nodes":
		return of((*renderer).node, func(n *fsm.Node) fsm.Trail { return n.History })
	case "hosts":
		return of((*renderer).host, func(h *fsm.Host) fsm.Trail { return h.History })
	case "tunnels":
		return of((*renderer).tunnel, func(t *fsm.Tunnel) fsm.Trail { return t.History }, fsm.TableGroup, fsm.TableNodes, fsm.TableHosts)
	case "nodeconfigs":
		return of((*renderer).nodeConfig, nil)
	case "leases":
		return of((*renderer).lease, func(l *fsm.Lease) fsm.Trail { return l.History })
	case records.Registers:
		return of((*renderer).register, func(p *fsm.Register) fsm.Trail { return p.History })
	case "policies":
		return of((*renderer).policy, func(p *fsm.Policy) fsm.Trail { return p.History })
	case "holds":
		return of((*renderer).hold, func(h *fsm.Hold) fsm.Trail { return h.History })
	case "drains":
		return of((*renderer).drain, func(d *fsm.Drain) fsm.Trail { return d.History })
	case "moves":
		return of((*renderer).move, func(m *fsm.Move) fsm.Trail { return m.History },
			append(hops, fsm.TableAllocations, fsm.TableRoutes, fsm.TableLeases, fsm.TableL2Advertisements)...)
	case "revocations":
		return of((*renderer).revocation, func(r *fsm.Revocation) fsm.Trail { return r.History })
	case "members":
		return of((*renderer).member, nil).foundBy(serversOf)
	case "sources":
		return of((*renderer).source, nil, fsm.TableHolds)
	case "group":
		return of((*renderer).group, func(g *fsm.Group) fsm.Trail { return g.History })
	}
	panic("records: kind " + name + " has no table") // a kind that was added to the API only
}

// lookup finds the rows that a name means.
func (k kind) lookup(v *fsm.View, name string) []fsm.Record {
	if row, ok := fsm.Get[fsm.Record](v, k.table, name); ok {
		return []fsm.Record{row}
	}
	if k.alias == nil {
		return nil
	}
	return k.alias(v, name)
}

// ownersOf finds all allocations of an address.
func ownersOf(v *fsm.View, name string) []fsm.Record {
	address, err := netip.ParseAddr(name)
	if err != nil {
		return nil
	}
	var out []fsm.Record
	for _, a := range v.Owners(address.String()) {
		out = append(out, a)
	}
	return out
}

// routeOf finds a route by its address, or by its prefix in any spelling.
func routeOf(v *fsm.View, name string) []fsm.Record {
	prefix, err := netip.ParsePrefix(name)
	if err != nil {
		address, err := netip.ParseAddr(name)
		if err != nil {
			return nil
		}
		prefix = fsm.HostPrefix(address)
	}
	if row, ok := fsm.Get[fsm.Record](v, fsm.TableRoutes, prefix.String()); ok {
		return []fsm.Record{row}
	}
	return nil
}

// serversOf finds the Raft servers of a member.
func serversOf(v *fsm.View, name string) []fsm.Record {
	return slices.DeleteFunc(fsm.List[fsm.Record](v, fsm.TableMembers), func(row fsm.Record) bool {
		return row.(*fsm.Member).Name != name
	})
}
