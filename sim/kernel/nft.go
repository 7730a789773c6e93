// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairlead.io/fairlead/sim/kernel/message"
)

// transact carries out all parts of a transaction, or none.
func (k *Kernel) transact(ops []message.Op, own bool) string {
	t := &transaction{tables: map[string]*message.Table{}}
	for name, table := range k.tables {
		t.tables[name] = table
	}
	changed := map[string]bool{}
	for _, op := range ops {
		if name := t.do(op); name != "" {
			if name == invalid {
				k.refuse(op.Do+" in table "+op.Table, t.why)
			}
			return name
		}
		changed[op.Table] = true
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if why := dangling(t.tables[name]); why != "" {
			return k.refuse("transaction on table "+name, why)
		}
		k.foreign(own, slices.Contains([]string{message.SteerTable, message.NATTable, message.ProxyTable}, name), "table "+name)
	}
	k.tables = t.tables
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		k.tell(message.Event{Table: name, Own: own})
	}
	k.publish()
	if changed[message.ProxyTable] {
		k.publishProxies()
	}
	return ""
}

// transaction works on copies.
type transaction struct {
	tables map[string]*message.Table
	copied map[string]bool
	why    string
}

func (t *transaction) invalid(format string, args ...any) string {
	t.why = fmt.Sprintf(format, args...)
	return invalid
}

// table is a copy of a table that may be changed.
func (t *transaction) table(name string) *message.Table {
	have := t.tables[name]
	if have == nil || t.copied[name] {
		return have
	}
	c := &message.Table{Comment: have.Comment, Sets: maps.Clone(have.Sets), Chains: maps.Clone(have.Chains), Elements: map[string]map[string]string{}}
	for set, elements := range have.Elements {
		c.Elements[set] = maps.Clone(elements)
	}
	t.own(name, c)
	return c
}

func (t *transaction) own(name string, table *message.Table) {
	if t.copied == nil {
		t.copied = map[string]bool{}
	}
	t.tables[name], t.copied[name] = table, true
}

func (t *transaction) do(op message.Op) string {
	table := t.table(op.Table)
	if op.Do == "add-table" {
		if table == nil {
			table = &message.Table{Sets: map[string]message.Set{}, Chains: map[string]message.Chain{}, Elements: map[string]map[string]string{}}
			t.own(op.Table, table)
		}
		table.Comment = op.Comment
		return ""
	}
	if table == nil {
		return "ENOENT"
	}
	switch op.Do {
	case "delete-table":
		delete(t.tables, op.Table)
		return ""
	case "add-set", "delete-set":
		return t.set(table, op)
	case "add-chain", "flush-chain", "delete-chain", "add-rules":
		return t.chain(table, op)
	case "add-elements", "delete-elements":
		return t.elements(table, op)
	}
	return t.invalid("unknown operation")
}

func (t *transaction) set(table *message.Table, op message.Op) string {
	if op.Set == nil {
		return t.invalid("no set")
	}
	_, there := table.Sets[op.Set.Name]
	if op.Do == "delete-set" {
		if !there {
			return "ENOENT"
		}
		delete(table.Sets, op.Set.Name)
		delete(table.Elements, op.Set.Name)
		return ""
	}
	if there {
		return "EEXIST"
	}
	table.Sets[op.Set.Name] = *op.Set
	table.Elements[op.Set.Name] = map[string]string{}
	return ""
}

func (t *transaction) chain(table *message.Table, op message.Op) string {
	if op.Chain == nil {
		return t.invalid("no chain")
	}
	have, there := table.Chains[op.Chain.Name]
	switch {
	case op.Do == "add-chain" && there:
		return "EEXIST"
	case op.Do != "add-chain" && !there:
		return "ENOENT"
	}
	switch op.Do {
	case "add-chain":
		have = message.Chain{Name: op.Chain.Name, Hook: op.Chain.Hook, Priority: op.Chain.Priority}
	case "flush-chain":
		have.Rules, have.Tags = nil, nil
	case "delete-chain":
		if len(have.Rules) > 0 {
			return "EBUSY"
		}
		delete(table.Chains, have.Name)
		return ""
	case "add-rules":
		if len(op.Chain.Rules) != len(op.Chain.Tags) {
			return t.invalid("%d rules with %d tags", len(op.Chain.Rules), len(op.Chain.Tags))
		}
		for _, r := range op.Chain.Rules {
			if why := ruleFault(table, r); why != "" {
				return t.invalid("chain %s: %s", have.Name, why)
			}
		}
		have.Rules = slices.Concat(have.Rules, op.Chain.Rules)
		have.Tags = slices.Concat(have.Tags, op.Chain.Tags)
	}
	table.Chains[have.Name] = have
	return ""
}

func (t *transaction) elements(table *message.Table, op message.Op) string {
	for _, e := range op.Elements {
		set, there := table.Sets[e.Set]
		if !there {
			return "ENOENT"
		}
		if why := elementFault(set, e); why != "" {
			return t.invalid("set %s, element %s: %s", e.Set, e.Key, why)
		}
		was, there := table.Elements[e.Set][e.Key]
		switch {
		case op.Do == "delete-elements" && !there:
			return "ENOENT"
		case op.Do == "delete-elements":
			delete(table.Elements[e.Set], e.Key)
		case there && was != e.Data:
			return "EEXIST"
		default:
			table.Elements[e.Set][e.Key] = e.Data
		}
	}
	return ""
}

// size is how many bytes parts take.
func size(parts []message.Type) (n int) {
	for _, p := range parts {
		n += p.Bytes()
	}
	return n
}

// elementFault tells why a set cannot have an element.
func elementFault(s message.Set, e message.Element) string {
	key, err := hex.DecodeString(e.Key)
	if err != nil || len(key) != size(s.Key) {
		return fmt.Sprintf("its key is not %d bytes", size(s.Key))
	}
	switch {
	case s.Dynamic:
		return "packets fill the set"
	case s.Interval && e.Data == message.IntervalEnd:
		return ""
	case s.Verdict:
		if verdictChain(e.Data) == "" && e.Data != "drop" && e.Data != "return" {
			return "its data is no verdict: " + e.Data
		}
		return ""
	}
	data, err := hex.DecodeString(e.Data)
	if err != nil || len(data) != size(s.Data) {
		return fmt.Sprintf("its data is not %d bytes", size(s.Data))
	}
	return ""
}

// verdictChain is the chain that a verdict leads to, empty if to none.
func verdictChain(verdict string) string {
	if c, ok := strings.CutPrefix(verdict, "goto "); ok {
		return c
	}
	c, _ := strings.CutPrefix(verdict, "jump ")
	if c == verdict {
		return ""
	}
	return c
}

// dangling tells what a table names that is not there.
func dangling(t *message.Table) string {
	if t == nil {
		return ""
	}
	missing := func(verdict string) bool {
		_, there := t.Chains[verdictChain(verdict)]
		return verdictChain(verdict) != "" && !there
	}
	for _, name := range slices.Sorted(maps.Keys(t.Chains)) {
		for _, rule := range t.Chains[name].Rules {
			for _, step := range rule {
				if _, there := t.Sets[step.Set]; step.Set != "" && !there {
					return fmt.Sprintf("chain %s names set %s, which is not there", name, step.Set)
				}
				if missing(step.Is) {
					return fmt.Sprintf("chain %s leads to %q, which is not there", name, step.Is)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Elements)) {
		if !t.Sets[name].Verdict {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(t.Elements[name])) {
			if missing(t.Elements[name][key]) {
				return fmt.Sprintf("set %s leads to %q, which is not there", name, t.Elements[name][key])
			}
		}
	}
	return ""
}
