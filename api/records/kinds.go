// SPDX-License-Identifier: Apache-2.0

package records

import (
	"slices"
	"strings"
)

// Kind is one kind of object that can be read.
type Kind struct {
	Name    string   // plural, as the API has it
	Aliases []string // what else people may call it
	Columns []Column // of tables; the first is the object's name
}

// Column shows one value of a document. Fields of its path are separated by dots, and go through lists.
type Column struct{ Title, Path string }

// Kinds lists all kinds, in the order in which people are told of them.
func Kinds() []Kind {
	return []Kind{
		{"services", []string{"service", "svc"}, []Column{
			{"NAME", "name"}, {"STATE", "state"}, {"ADDRESSES", "addresses.address"}, {"PORTS", "ports.port"},
			{"READY", "readyEndpoints"}, {"PENDING", "pending.text"},
		}},
		{"pools", []string{"pool"}, []Column{
			{"NAME", "name"}, {"RANGES", "ranges"}, {"AUTO-ASSIGN", "autoAssign"}, {"ALLOCATED", "allocated"}, {"SIZE", "size"}, {"BGP", "bgp"},
		}},
		{"allocations", []string{"allocation", "alloc"}, []Column{
			{"NAME", "name"}, {"ADDRESS", "address"}, {"SERVICE", "service"}, {"POOL", "pool"}, {"SHARING", "sharingKey"}, {"RELEASING", "releasing"},
		}},
		{"drivers", []string{"driver", "drv"}, []Column{
			{"NAME", "name"}, {"URL", "url"}, {"DRAINING", "draining"}, {"LOADBALANCERS", "loadBalancers"},
		}},
		{"loadbalancers", []string{"loadbalancer", "lb"}, []Column{
			{"NAME", "name"}, {"DRIVER", "driver"}, {"STATE", "state"}, {"ENSURED", "ensured"}, {"BINDINGS", "bindings"},
			{"ATTEMPTS", "attempts"}, {"REASON", "reason"},
		}},
		{"bindings", []string{"binding", "bind"}, []Column{
			{"NAME", "name"}, {"BALANCER", "balancer"}, {"BACKEND", "backend.name"}, {"ADDRESS", "address"}, {"STATE", "state"}, {"ATTEMPTS", "attempts"}, {"REASON", "reason"},
		}},
		{"operations", []string{"operation", "op"}, []Column{
			{"SUBJECT", "name"}, {"ACTION", "action"}, {"BINDING", "binding"}, {"BALANCER", "balancer"}, {"OPEN", "open"}, {"ATTEMPT", "attempt"}, {"NOT-BEFORE", "notBefore"},
		}},
		{"routes", []string{"route", "rt"}, []Column{
			{"PREFIX", "name"}, {"NEXT-HOPS", "nextHops.address"}, {"NODES", "nextHops.node"}, {"STATES", "nextHops.state"}, {"SERVICES", "services"},
		}},
		{"peers", []string{"peer"}, []Column{
			{"NAME", "name"}, {"ADDRESS", "address"}, {"PORT", "port"}, {"ASN", "asn"}, {"LOCAL-ASN", "localASN"}, {"SESSION", "sessions.state"},
		}},
		{"advertisements", []string{"advertisement", "adv"}, []Column{
			{"NAME", "name"}, {"POOLS", "pools"}, {"PEERS", "peers"}, {"COMMUNITIES", "communities"}, {"LOCAL-PREF", "localPref"},
		}},
		{"l2advertisements", []string{"l2advertisement", "l2adv"}, []Column{
			{"NAME", "name"}, {"POOLS", "pools"}, {"NODES", "nodes"}, {"INTERFACES", "interfaces"}, {"KEPT", "kept"},
		}},
		{"nodes", []string{"node", "no"}, []Column{
			{"NAME", "name"}, {"ADDRESSES", "addresses"}, {"ELIGIBLE", "eligible"}, {"LIVENESS", "liveness"}, {"ACKNOWLEDGED", "acknowledged"}, {"WHY", "why"},
		}},
		{"hosts", []string{"host"}, []Column{{"NAME", "name"}, {"ADDRESSES", "addresses"}, {"SINCE", "since"}, {"BOOT", "boot"}, {"ACKNOWLEDGED", "acknowledged"}}},
		{"tunnels", []string{"tunnel"}, []Column{
			{"HOST", "name"}, {"ADDRESSES", "addresses"}, {"UNDERLAY", "underlay"}, {"READY", "ready"}, {"LEAVING", "leaving"}, {"SINCE", "since"},
		}},
		{"nodeconfigs", []string{"nodeconfig", "nc"}, []Column{
			{"NAME", "name"}, {"SWITCHES", "switches"}, {"IN-TABLE", "inTable"}, {"OUT-TABLE", "outTable"}, {"REPLACE-DEFAULT", "replaceDefault"},
		}},
		{"leases", []string{"lease"}, []Column{{"VIP", "name"}, {"HOLDER", "holder"}, {"FENCE", "fence"}}},
		{"policies", []string{"policy", "pol", "redirects", "redirect", "rd"}, []Column{
			{"NAME", "name"}, {"NUMBER", "number"}, {"CAPTURES", "captures.address"}, {"PORTS", "captures.port"}, {"MODE", "mode"},
			{"BACKENDS", "backends.address"}, {"BAD", "bad"}, {"FAILS-OPEN", "failsOpen"}, {"PENDING", "pending.text"},
		}},
		{"holds", []string{"hold"}, []Column{
			{"ID", "name"}, {"OF", "of"}, {"SUBJECTS", "subjects"}, {"SINCE", "since"}, {"RELEASED", "released"}, {"WHY", "why"},
		}},
		{"drains", []string{"drain"}, []Column{
			{"NAME", "name"}, {"SINCE", "since"}, {"DONE", "done"}, {"LEFT", "left.prefix"}, {"WHY", "left.why"}, {"FLOWS", "flows.open"}, {"BUSY", "flows.busy"},
		}},
		{"moves", []string{"move"}, []Column{
			{"SERVICE", "name"}, {"NODE", "node"}, {"TIME", "time"}, {"BY", "by"}, {"REASON", "reason"}, {"DONE", "done"}, {"LEFT", "left.prefix"}, {"WHY", "left.why"},
		}},
		{"revocations", []string{"revocation"}, []Column{
			{"NAME", "name"}, {"GOOD-SINCE", "goodSince"}, {"TIME", "time"}, {"BY", "by"}, {"REASON", "reason"},
		}},
		{"members", []string{"member"}, []Column{
			{"SERVER", "name"}, {"MEMBER", "member"}, {"RAFT", "raft"}, {"API", "api"}, {"FORMAT", "format"}, {"VERSION", "version"}, {"ANNOUNCED", "announced"}, {"AWAY", "away"},
		}},
		{"sources", []string{"source"}, []Column{{"NAME", "name"}, {"CLUSTER", "cluster"}, {"REWIND", "rewind"}, {"RAN-BACK", "ranBack"}}},
		{"group", []string{"groups"}, []Column{
			{"NAME", "name"}, {"ID", "id"}, {"EPOCH", "epoch"}, {"FORMAT", "format"}, {"QUARANTINE", "quarantine"},
		}},
	}
}

// Registers are objects by which tests see whether the record is one: they are read as any other, and nothing lists them for people.
const Registers = "registers"

// Register is one of Registers.
type Register struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Version uint64 `json:"version"`
	Spec    []byte `json:"spec"` // base64
}

// Find finds a kind by its name or an alias, whatever the case.
func Find(name string) (Kind, bool) {
	name = strings.ToLower(name)
	all := append(Kinds(), Kind{Name: Registers, Columns: []Column{{"NAME", "name"}, {"UID", "uid"}}})
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name || slices.Contains(k.Aliases, name) })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Names lists the kinds' names, in the order of Kinds.
func Names() []string {
	var out []string
	for _, k := range Kinds() {
		out = append(out, k.Name)
	}
	return out
}
