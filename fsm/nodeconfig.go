// SPDX-License-Identifier: Apache-2.0

package fsm

import "net/netip"

// NodeConfig is how nodes steer: the content of kube-iprule-cfg. Name is a node's, or "" for all others.
type NodeConfig struct {
	seal
	Name     string       `pb:"1" json:"name"`
	Switches []netip.Addr `pb:"2" json:"switches"` // gateways for answers, one per family
	InTable  uint32       `pb:"3" json:"inTable"`  // routing table for packets to addresses; 0 means 101
	OutTable uint32       `pb:"4" json:"outTable"` // routing table for answers; 0 means 102
	// ReplaceDefault is DEPLOY_MODEL=test: the node's default gateway becomes the switch.
	ReplaceDefault bool `pb:"5" json:"replaceDefault"`
	// Priorities of the rules for packets to and from addresses, and the packet mark; 0 means the agent's own
	// choice. From format 2 on.
	RulePriorityIn  uint32 `pb:"6" json:"rulePriorityIn"`
	RulePriorityOut uint32 `pb:"7" json:"rulePriorityOut"`
	FwMark          uint32 `pb:"8" json:"fwMark"`
	// Version and Object are those of the config map. From format 2 on.
	Version uint64    `pb:"9" json:"version"`
	Object  ObjectRef `pb:"10" json:"object"`
}

// Table is TableNodeConfigs.
func (*NodeConfig) Table() Table { return TableNodeConfigs }

// Key is the node's name, "*" for the configuration of all others.
func (n *NodeConfig) Key() string {
	if n.Name == "" {
		return "*"
	}
	return n.Name
}

// PutNodeConfig adds or replaces a node configuration.
type PutNodeConfig struct {
	Config NodeConfig `pb:"1"`
}

// Kind is KindPutNodeConfig.
func (*PutNodeConfig) Kind() Kind { return KindPutNodeConfig }

func (c *PutNodeConfig) apply(tx *txn) Outcome {
	n := c.Config
	if in, out := orDefault(n.InTable, 101), orDefault(n.OutTable, 102); in == out {
		return refuse(RejectInvalid, "node config "+n.Key(), utoa(uint64(in)), "two different tables")
	}
	if out, old := tx.refersBelow(n.Object, "node config "+n.Key()); old {
		return out
	}
	tx.put(&n)
	return tx.ok()
}

// DeleteNodeConfig removes a node configuration.
type DeleteNodeConfig struct {
	Name string `pb:"1"`
}

// Kind is KindDeleteNodeConfig.
func (*DeleteNodeConfig) Kind() Kind { return KindDeleteNodeConfig }

func (c *DeleteNodeConfig) apply(tx *txn) Outcome {
	key := (&NodeConfig{Name: c.Name}).Key()
	n, ok := find[*NodeConfig](tx.rows, TableNodeConfigs, key)
	if !ok {
		return refuse(RejectNotFound, "node config "+key, "", "")
	}
	tx.remove(n)
	return tx.ok()
}
