// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"encoding/hex"
	"fmt"

	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/sim/kernel/message"
)

// translation is the edge of nat.
type translation struct {
	kernel *Kernel
	table  string
}

// Read implements nat.Edge.
func (t *translation) Read(ctx context.Context, _ nat.Ruleset) (nat.Ruleset, bool, error) {
	have := nat.Ruleset{Sets: map[string]nat.Set{}, Chains: map[string]nat.Chain{}, Elements: map[string]map[string]string{}}
	a, err := t.kernel.call(ctx, message.Request{Dump: &message.Dump{Table: t.table}})
	if err != nil || a.Table == nil {
		return have, false, explain("read table inet "+t.table, err)
	}
	for name, s := range a.Table.Sets {
		have.Sets[name] = nat.Set{
			Name: name, Key: partsOf(s.Key), Data: partsOf(s.Data), Verdict: s.Verdict, Interval: s.Interval, Dynamic: s.Dynamic, Size: s.Size,
		}
	}
	for name, c := range a.Table.Chains {
		have.Chains[name] = nat.Chain{Name: name, Hook: nat.Hook(c.Hook), Priority: c.Priority, Tags: c.Tags}
	}
	for set, elements := range a.Table.Elements {
		if len(elements) == 0 {
			continue
		}
		have.Elements[set] = make(map[string]string, len(elements))
		for key, data := range elements {
			have.Elements[set][decode(key)] = dataOf(have.Sets[set], data)
		}
	}
	return have, true, nil
}

// explain tells an error with what was tried; nil for none.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func partsOf(types []message.Type) (out []nat.Type) {
	for _, t := range types {
		out = append(out, nat.Type(t))
	}
	return out
}

func typesOf(parts []nat.Type) (out []message.Type) {
	for _, p := range parts {
		out = append(out, message.Type(p))
	}
	return out
}

func decode(text string) string {
	b, _ := hex.DecodeString(text) // the kernel took nothing else
	return string(b)
}

// dataOf decodes data; those of verdicts and ends of intervals are words.
func dataOf(s nat.Set, data string) string {
	if s.Verdict || s.Interval {
		return data
	}
	return decode(data)
}

// Commit implements nat.Edge.
func (t *translation) Commit(ctx context.Context, change nat.Change, sets map[string]nat.Set) error {
	before, rest := change.Split()
	for _, one := range []nat.Change{before, rest} {
		if one.Empty() {
			continue
		}
		if err := t.kernel.do(ctx, message.Request{Table: changes(t.table, one, sets)}); err != nil {
			return explain("change table inet "+t.table, err)
		}
	}
	return nil
}

// Replace implements nat.Edge.
func (t *translation) Replace(ctx context.Context, want nat.Ruleset, exists bool) error {
	var ops []message.Op
	if exists {
		ops = append(ops, message.Op{Do: "delete-table", Table: t.table})
	}
	ops = append(ops, message.Op{Do: "add-table", Table: t.table})
	ops = append(ops, changes(t.table, nat.Diff(nat.Ruleset{}, want), want.Sets)...)
	return explain("change table inet "+t.table, t.kernel.do(ctx, message.Request{Table: ops}))
}

// EndFlows implements nat.Edge. The model knows of no flow that outlives its first packet.
func (t *translation) EndFlows(nat.Flows) (uint, error) {
	return 0, explain("end UDP flows", t.kernel.do(context.Background(), message.Request{Flows: true}))
}

// Tally implements nat.Edge. The model counts nothing, and nobody asks.
func (t *translation) Tally() (map[string]uint64, error) { return nil, nil }

// Clients implements nat.Edge, likewise.
func (t *translation) Clients(context.Context, []string, int) (map[string]int, error) {
	return nil, nil
}

// Loads implements nat.Edge, likewise.
func (t *translation) Loads(context.Context, []flows.Endpoint) (map[flows.Endpoint]flows.Load, error) {
	return nil, nil
}

// Ahead implements nat.Edge. Nobody else has a table.
func (t *translation) Ahead() string { return "" }

// Watch implements nat.Edge.
func (t *translation) Watch(ctx context.Context, changed func()) error {
	return t.kernel.watch(ctx, changed, func(e message.Event) {
		if e.Table == t.table && !e.Own {
			changed()
		}
	})
}

// changes are the operations of a change of a table, in the kernel's order.
func changes(table string, c nat.Change, sets map[string]nat.Set) (ops []message.Op) {
	op := func(do string, chain *message.Chain) {
		ops = append(ops, message.Op{Do: do, Table: table, Chain: chain})
	}
	for _, s := range c.AddSets {
		ops = append(ops, message.Op{Do: "add-set", Table: table, Set: &message.Set{
			Name: s.Name, Key: typesOf(s.Key), Data: typesOf(s.Data), Verdict: s.Verdict, Interval: s.Interval, Dynamic: s.Dynamic, Size: s.Size,
		}})
	}
	for _, chain := range c.AddChains {
		op("add-chain", &message.Chain{Name: chain.Name, Hook: int(chain.Hook), Priority: chain.Priority})
	}
	for _, chain := range c.AddChains {
		op("add-rules", fill(chain))
	}
	for _, chain := range c.Refill {
		op("flush-chain", &message.Chain{Name: chain.Name})
		op("add-rules", fill(chain))
	}
	if len(c.Remove) > 0 {
		ops = append(ops, message.Op{Do: "delete-elements", Table: table, Elements: encode(c.Remove, sets)})
	}
	if len(c.Add) > 0 {
		ops = append(ops, message.Op{Do: "add-elements", Table: table, Elements: encode(c.Add, sets)})
	}
	for _, name := range c.DropChains {
		op("flush-chain", &message.Chain{Name: name})
	}
	for _, name := range c.DropChains {
		op("delete-chain", &message.Chain{Name: name})
	}
	for _, name := range c.DropSets {
		ops = append(ops, message.Op{Do: "delete-set", Table: table, Set: &message.Set{Name: name}})
	}
	return ops
}

func encode(list []nat.Element, sets map[string]nat.Set) (out []message.Element) {
	for _, e := range list {
		data := e.Data
		if s := sets[e.Set]; !s.Verdict && !s.Interval {
			data = hex.EncodeToString([]byte(data))
		}
		out = append(out, message.Element{Set: e.Set, Key: hex.EncodeToString([]byte(e.Key)), Data: data})
	}
	return out
}

// fill is a chain's rules.
func fill(c nat.Chain) *message.Chain {
	out := &message.Chain{Name: c.Name, Tags: c.Tags}
	for _, r := range c.Rules {
		var steps []message.Step
		for _, o := range r {
			steps = append(steps, step(o))
		}
		out.Rules = append(out.Rules, steps)
	}
	return out
}

// step encodes one step of a rule.
func step(o nat.Op) message.Step {
	switch o := o.(type) {
	case nat.Load:
		return message.Step{Do: "load", Field: int(o.Field), To: int(o.Into)}
	case nat.Put:
		return message.Step{Do: "put", Data: hex.EncodeToString([]byte(o.Value)), To: int(o.Into)}
	case nat.Draw:
		return message.Step{Do: "draw", Number: o.Of, To: int(o.Into)}
	case nat.Count: // for who does not count, the next one is as good as one that is drawn
		return message.Step{Do: "draw", Number: o.Of, To: int(o.Into)}
	case nat.Hash:
		return message.Step{Do: "hash", From: int(o.From), Bits: o.Bytes, Number: o.Of, To: int(o.Into)}
	case nat.Mask:
		return message.Step{Do: "mask", Data: hex.EncodeToString([]byte(o.Bits)), To: int(o.In)}
	case nat.SetMark:
		return message.Step{Do: "set-mark", Bits: o.Bits, Number: o.Value, To: int(o.Using)}
	case nat.Match:
		return message.Step{Do: "match", From: int(o.Register), Data: hex.EncodeToString([]byte(o.Value)), Not: o.Not}
	case nat.Member:
		return message.Step{Do: "member", Set: o.Set, From: int(o.Key)}
	case nat.Get:
		return message.Step{Do: "get", Set: o.Map, From: int(o.Key), To: int(o.Into)}
	case nat.Branch:
		return message.Step{Do: "branch", Set: o.Map, From: int(o.Key)}
	case nat.Remember:
		return message.Step{Do: "remember", Set: o.Set, From: int(o.Key), For: o.For}
	case nat.Translate:
		return message.Step{Do: "translate", Family: o.Family, To: int(o.Address), From: int(o.Port)}
	case nat.Masquerade:
		return message.Step{Do: "masquerade"}
	case nat.Refuse:
		return message.Step{Do: "refuse", Reset: o.Reset}
	case nat.Tally:
		return message.Step{Do: "tally"}
	case nat.Verdict:
		return message.Step{Do: "verdict", Is: o.Is}
	}
	panic(fmt.Sprintf("no encoding for %T", o)) // a step was added to nat, but not here
}
