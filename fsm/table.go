// SPDX-License-Identifier: Apache-2.0

package fsm

import "fmt"

// Table names one kind of record. Tables are listed in a fixed order, which is also the snapshot's.
type Table string

// The tables of the record (design §4).
const (
	TableGroup            Table = "group"
	TableMembers          Table = "members"
	TablePools            Table = "pools"
	TableAllocations      Table = "allocations"
	TableServices         Table = "services"
	TableRoutes           Table = "routes"
	TablePeers            Table = "peers"
	TableAdvertisements   Table = "advertisements"
	TableNodes            Table = "nodes"
	TableNodeConfigs      Table = "nodeconfigs"
	TableBalancers        Table = "loadbalancers"
	TableBindings         Table = "bindings"
	TableOperations       Table = "operations"
	TableLeases           Table = "leases"
	TableRegisters        Table = "policies" // by the name of before policies had one of their own
	TableHolds            Table = "holds"
	TableViews            Table = "views"
	TableGraves           Table = "graves"
	TableEnrolments       Table = "enrolments"
	TableDrivers          Table = "drivers"
	TableL2Advertisements Table = "l2advertisements"
	TableDrains           Table = "drains"
	TableMoves            Table = "moves"
	TablePolicies         Table = "redirects" // as snapshots and graves have it
	TableHosts            Table = "hosts"
	TableTunnels          Table = "tunnels"
	TableNumbers          Table = "numbers"
	TableRevocations      Table = "revocations"
)

// Tables lists every table in snapshot order.
func Tables() []Table {
	return []Table{
		TableGroup, TableMembers, TablePools, TableAllocations, TableServices, TableRoutes, TablePeers,
		TableAdvertisements, TableNodes, TableNodeConfigs, TableBalancers, TableBindings, TableOperations,
		TableLeases, TableRegisters, TableHolds, TableViews, TableGraves,
		TableEnrolments, TableDrivers, TableDrains, TableL2Advertisements, TableMoves, TablePolicies,
		TableHosts,
		TableTunnels,
		TableNumbers,
		TableRevocations,
	}
}

// Record is one immutable row. Whoever wants to change one copies it first.
type Record interface {
	Table() Table
	// Key is unique in the table; lists come out in its byte order.
	Key() string
	sealed() *seal
}

// seal carries the hash that a record had when it was put, so that replacing it costs no second walk.
type seal struct{ sum Digest }

func (s *seal) sealed() *seal { return s }

// newRecord gives an empty record of each table, for decoding a snapshot.
func newRecord(t Table) (Record, error) {
	switch t {
	case TableGroup:
		return &Group{}, nil
	case TableMembers:
		return &Member{}, nil
	case TablePools:
		return &Pool{}, nil
	case TableAllocations:
		return &Allocation{}, nil
	case TableServices:
		return &Service{}, nil
	case TableRoutes:
		return &Route{}, nil
	case TablePeers:
		return &Peer{}, nil
	case TableAdvertisements:
		return &Advertisement{}, nil
	case TableNodes:
		return &Node{}, nil
	case TableNodeConfigs:
		return &NodeConfig{}, nil
	case TableBalancers:
		return &LoadBalancer{}, nil
	case TableBindings:
		return &Binding{}, nil
	case TableOperations:
		return &Operation{}, nil
	case TableLeases:
		return &Lease{}, nil
	case TableRegisters:
		return &Register{}, nil
	case TableHolds:
		return &Hold{}, nil
	case TableViews:
		return &SourceView{}, nil
	case TableGraves:
		return &Grave{}, nil
	case TableEnrolments:
		return &Enrolment{}, nil
	case TableDrivers:
		return &Driver{}, nil
	case TableDrains:
		return &Drain{}, nil
	case TableL2Advertisements:
		return &L2Advertisement{}, nil
	case TableMoves:
		return &Move{}, nil
	case TablePolicies:
		return &Policy{}, nil
	case TableHosts:
		return &Host{}, nil
	case TableTunnels:
		return &Tunnel{}, nil
	case TableNumbers:
		return &Number{}, nil
	case TableRevocations:
		return &Revocation{}, nil
	}
	return nil, fmt.Errorf("table %q: unknown", t)
}
