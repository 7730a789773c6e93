// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// planNodeConfigs keeps how nodes steer: the config map kube-iprule-cfg, which is for all nodes.
func (p *planner) planNodeConfigs() {
	have := map[string]*fsm.NodeConfig{}
	for _, h := range fsm.List[*fsm.NodeConfig](p.in.Record, fsm.TableNodeConfigs) {
		have[h.Name] = h
	}
	var of *world.ConfigMap
	for _, c := range p.seen.configMaps {
		switch {
		case c.Name != configMapIPRule:
		case of == nil:
			of = c
		default:
			p.explain(fsm.TableNodeConfigs, c.ID.String(), WaitsForOverlap, of.ID.String()+" is used; keep only one of the two")
		}
	}
	if of == nil {
		p.removeNodeConfig(have[""])
		return
	}
	next, err := nodeConfigOf(of)
	if p.format < formatTranslation {
		next.RulePriorityIn, next.RulePriorityOut, next.FwMark = 0, 0, 0
	}
	if p.format >= formatObjectRef {
		next.Version, next.Object = of.Version, fsm.ObjectRef{Namespace: of.Namespace, UID: of.UID}
	}
	if err != nil {
		p.explain(fsm.TableNodeConfigs, of.ID.String(), WaitsForMend, err.Error()+"; the nodes steer as before")
		return
	}
	if h := have[""]; h == nil || !sameNodeConfig(h, &next) {
		p.propose("ConfigMap "+of.ID.String(), &fsm.PutNodeConfig{Config: next})
	}
}

// removeNodeConfig gives the nodes back their defaults once no source can hold the config map any more.
func (p *planner) removeNodeConfig(have *fsm.NodeConfig) {
	if have == nil {
		return
	}
	id := configMapOf(have)
	if !p.seen.mayRemove(world.KindConfigMap, id) {
		p.explainAbsent(fsm.TableNodeConfigs, world.KindConfigMap, id)
		return
	}
	p.propose("ConfigMap "+configMapIPRule+" is gone", &fsm.DeleteNodeConfig{})
}

// configMapOf is the config map that a configuration came from. A record of the first format does not keep its namespace;
// kube-system is where the old installation puts it.
func configMapOf(n *fsm.NodeConfig) world.ID {
	return world.ID{Namespace: cmp.Or(n.Object.Namespace, "kube-system"), Name: configMapIPRule}
}

// nodeConfigOf reads kube-iprule-cfg as the old system did, with its spelling of DEPLOY_MODEL.
func nodeConfigOf(c *world.ConfigMap) (fsm.NodeConfig, error) {
	var n fsm.NodeConfig
	switches, _ := c.Get("SWITCH")
	for text := range strings.SplitSeq(switches, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return n, fmt.Errorf("SWITCH: %q is no IP address; list the switch's addresses, one per family", text)
		}
		if slices.ContainsFunc(n.Switches, func(o netip.Addr) bool { return o.BitLen() == a.BitLen() }) {
			return n, fmt.Errorf("SWITCH: %s is a second address of its family; list one per family", a)
		}
		n.Switches = append(n.Switches, a)
	}
	if len(n.Switches) == 0 {
		return n, fmt.Errorf("SWITCH: empty; give the address of the switch")
	}
	var err error
	if n.InTable, err = routingTable(c, "IN_ROUTING_TABLE"); err != nil {
		return n, err
	}
	if n.OutTable, err = routingTable(c, "OUT_ROUTING_TABLE"); err != nil {
		return n, err
	}
	in, out := n.InTable, n.OutTable
	if in == 0 {
		in = 101
	}
	if out == 0 {
		out = 102
	}
	if in == out {
		return n, fmt.Errorf("IN_ROUTING_TABLE and OUT_ROUTING_TABLE are both %d; use two different tables", in)
	}
	if err := readMarks(c, &n); err != nil {
		return n, err
	}
	switch model, _ := c.Get("DEPLOY_MODEL"); model {
	case "", "barematel", "baremetal":
	case "test":
		n.ReplaceDefault = true
	default:
		return n, fmt.Errorf("DEPLOY_MODEL: %q is neither barematel nor test", model)
	}
	return n, nil
}

// readMarks reads the optional keys that the old system did not have.
func readMarks(c *world.ConfigMap, n *fsm.NodeConfig) error {
	for _, key := range []struct {
		name string
		into *uint32
		most uint64
	}{
		{"RULE_PRIORITY_IN", &n.RulePriorityIn, mainRule - 1}, {"RULE_PRIORITY_OUT", &n.RulePriorityOut, mainRule - 1},
		{"FWMARK", &n.FwMark, math.MaxUint32},
	} {
		text, _ := c.Get(key.name)
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		value, err := strconv.ParseUint(text, 0, 32)
		if err != nil || value == 0 || value > key.most {
			return fmt.Errorf("%s: %q is no number from 1 to %d; 0x is read as hexadecimal", key.name, text, key.most)
		}
		*key.into = uint32(value)
	}
	if n.RulePriorityIn != 0 && n.RulePriorityIn == n.RulePriorityOut {
		return fmt.Errorf("RULE_PRIORITY_IN and RULE_PRIORITY_OUT are both %d; use two different ones", n.RulePriorityIn)
	}
	return nil
}

// mainRule is the priority of the kernel's own rule that looks up the main table: ours must come before it.
const mainRule = 32766

// reservedTables are those that the kernel names itself (local, main, default).
const reservedTables = 253

func routingTable(c *world.ConfigMap, key string) (uint32, error) {
	text, ok := c.Get(key)
	if text = strings.TrimSpace(text); !ok || text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 || n >= reservedTables && n <= 255 {
		return 0, fmt.Errorf("%s: %q is no number of a routing table of ours; use 1 to 252 or above 255", key, text)
	}
	return uint32(n), nil
}

func sameNodeConfig(a, b *fsm.NodeConfig) bool {
	return slices.Equal(a.Switches, b.Switches) && a.InTable == b.InTable && a.OutTable == b.OutTable &&
		a.ReplaceDefault == b.ReplaceDefault && a.RulePriorityIn == b.RulePriorityIn &&
		a.RulePriorityOut == b.RulePriorityOut && a.FwMark == b.FwMark && a.Object == b.Object
}
