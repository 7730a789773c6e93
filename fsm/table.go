// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"

	"github.com/hashicorp/go-memdb"
)

// Table names one kind of record. Tables are listed in a fixed order, which is also the snapshot's.
type Table string

// The tables of the record (DESIGN §4).
const (
	TableGroup          Table = "group"
	TableMembers        Table = "members"
	TablePools          Table = "pools"
	TableAllocations    Table = "allocations"
	TableServices       Table = "services"
	TableRoutes         Table = "routes"
	TablePeers          Table = "peers"
	TableAdvertisements Table = "advertisements"
	TableNodes          Table = "nodes"
	TableNodeConfigs    Table = "nodeconfigs"
	TableBalancers      Table = "loadbalancers"
	TableBindings       Table = "bindings"
	TableOperations     Table = "operations"
	TableLeases         Table = "leases"
	TablePolicies       Table = "policies"
	TableHolds          Table = "holds"
	TableViews          Table = "views"
	TableGraves         Table = "graves"
)

// Tables lists every table in snapshot order.
func Tables() []Table {
	return []Table{
		TableGroup, TableMembers, TablePools, TableAllocations, TableServices, TableRoutes, TablePeers,
		TableAdvertisements, TableNodes, TableNodeConfigs, TableBalancers, TableBindings, TableOperations,
		TableLeases, TablePolicies, TableHolds, TableViews, TableGraves,
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
	case TablePolicies:
		return &Policy{}, nil
	case TableHolds:
		return &Hold{}, nil
	case TableViews:
		return &SourceView{}, nil
	case TableGraves:
		return &Grave{}, nil
	}
	return nil, fmt.Errorf("table %q: unknown", t)
}

// Names of secondary indexes.
const (
	indexID       = "id"
	indexAddress  = "address"
	indexService  = "service"
	indexSubject  = "subject"
	indexBalancer = "balancer"
	indexAge      = "age"
)

func schema() *memdb.DBSchema {
	s := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{}}
	for _, t := range Tables() {
		s.Tables[string(t)] = &memdb.TableSchema{
			Name: string(t),
			Indexes: map[string]*memdb.IndexSchema{
				indexID: {Name: indexID, Unique: true, Indexer: by(func(r Record) string { return r.Key() })},
			},
		}
	}
	add := func(t Table, name string, f func(Record) string) {
		s.Tables[string(t)].Indexes[name] = &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: by(f)}
	}
	add(TableAllocations, indexAddress, func(r Record) string { return r.(*Allocation).Address.String() })
	add(TableAllocations, indexService, func(r Record) string { return string(r.(*Allocation).Service) })
	add(TableBindings, indexSubject, func(r Record) string { return string(r.(*Binding).Subject()) })
	add(TableBindings, indexBalancer, func(r Record) string { return string(r.(*Binding).Balancer) })
	add(TableGraves, indexAge, func(r Record) string {
		at := r.(*Grave).At
		return fmt.Sprintf("%016x%016x", uint64(at.Epoch), uint64(at.Index))
	})
	return s
}

// by indexes records under a string; an empty one leaves the record out of that index. Keys end in a zero
// byte, so that no key is a prefix of another.
type by func(Record) string

func (f by) FromObject(obj any) (bool, []byte, error) {
	k := f(obj.(Record))
	if k == "" {
		return false, nil, nil
	}
	return true, append([]byte(k), 0), nil
}

func (f by) FromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("index wants one string, got %d arguments", len(args))
	}
	k, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("index wants a string, got %T", args[0])
	}
	return append([]byte(k), 0), nil
}
