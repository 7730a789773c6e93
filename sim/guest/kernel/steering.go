// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/sim/kernel/message"
)

// steering is the edge of steer. Calls to it have no context: those to a kernel end.
type steering struct{ kernel *Kernel }

// errNotModelled is of changes that the simulated kernel does not know.
var errNotModelled = errors.New("not modelled by the simulator")

// Read implements steer.Edge.
func (s *steering) Read(q steer.Query) (*steer.View, steer.Facts, error) {
	a, err := s.kernel.call(context.Background(), message.Request{Dump: &message.Dump{Ways: q.Switches, Table: message.SteerTable}})
	if err != nil {
		return nil, steer.Facts{}, fmt.Errorf("read the kernel: %w", err)
	}
	v := steer.NewView()
	for _, r := range a.Rules {
		v.Rules.Add(steer.Rule(r))
	}
	tables := q.Tables(v.Rules)
	for _, r := range a.Routes {
		if q.Concerns(steer.Route(r), tables) {
			v.Routes.Add(steer.Route(r))
		}
	}
	if a.Table != nil {
		v.Filter = a.Table.Comment
		for set, elements := range a.Table.Elements {
			for key := range elements {
				e, err := elementOf(steer.Set(set), key)
				if err != nil {
					return nil, steer.Facts{}, err
				}
				v.Elements.Add(e)
			}
		}
	}
	return v, facts(a), nil
}

func facts(a message.Answer) steer.Facts {
	f := steer.Facts{Ways: map[netip.Addr]steer.Way{}}
	for _, l := range a.Links {
		f.Links = append(f.Links, steer.Link(l))
	}
	for to, w := range a.Ways {
		f.Ways[to] = steer.Way(w)
	}
	return f
}

// Look implements steer.Edge.
func (s *steering) Look(q steer.Query, _ *steer.View) (steer.Facts, error) {
	a, err := s.kernel.call(context.Background(), message.Request{Dump: &message.Dump{Ways: q.Switches}})
	if err != nil {
		return steer.Facts{}, fmt.Errorf("read the node: %w", err)
	}
	return facts(a), nil
}

// Do implements steer.Edge.
func (s *steering) Do(c steer.Change) error {
	r, err := request(c)
	if err == nil {
		err = s.kernel.do(context.Background(), r)
	}
	if r.Delete && (errors.Is(err, Errno("ENOENT")) || errors.Is(err, Errno("ESRCH"))) {
		err = nil // what is to be deleted is not there
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// request is the call that makes a change.
func request(c steer.Change) (message.Request, error) {
	switch c := c.(type) {
	case steer.AddRule:
		return message.Request{Rule: rule(c.Rule)}, nil
	case steer.DeleteRule:
		return message.Request{Rule: rule(c.Rule), Delete: true}, nil
	case steer.PutRoute:
		return message.Request{Route: route(c.Route), Replace: c.Over != (steer.Route{})}, nil
	case steer.DeleteRoute:
		return message.Request{Route: route(c.Route), Delete: true}, nil
	case steer.EditFilter:
		return message.Request{Table: edit(c)}, nil
	case steer.Remark:
		return message.Request{Flows: true}, nil
	case steer.DropFilter:
		return message.Request{Table: []message.Op{{Do: "add-table", Table: steer.TableName}, {Do: "delete-table", Table: steer.TableName}}}, nil
	}
	return message.Request{}, errNotModelled
}

func rule(r steer.Rule) *message.Rule {
	out := message.Rule(r)
	return &out
}

func route(r steer.Route) *message.Route {
	out := message.Route(r)
	return &out
}

// sets are those of the table, with the types of their keys.
var sets = []message.Set{
	{Name: string(steer.SetAddresses4), Key: []message.Type{message.Address4}},
	{Name: string(steer.SetAddresses6), Key: []message.Type{message.Address6}},
	{Name: string(steer.SetPorts4), Key: []message.Type{message.Address4, message.ProtocolNumber, message.PortNumber}},
	{Name: string(steer.SetPorts6), Key: []message.Type{message.Address6, message.ProtocolNumber, message.PortNumber}},
	{Name: string(steer.SetInterfaces), Key: []message.Type{message.Name}},
}

// edit is the transaction of a change of the table.
func edit(c steer.EditFilter) (ops []message.Op) {
	if c.Reset {
		ops = append(ops, message.Op{Do: "add-table", Table: steer.TableName}, message.Op{Do: "delete-table", Table: steer.TableName},
			message.Op{Do: "add-table", Table: steer.TableName, Comment: c.Filter})
		for _, s := range sets {
			ops = append(ops, message.Op{Do: "add-set", Table: steer.TableName, Set: &s})
		}
	}
	if c.Remove.Len() > 0 {
		ops = append(ops, message.Op{Do: "delete-elements", Table: steer.TableName, Elements: elements(c.Remove)})
	}
	if c.Add.Len() > 0 {
		ops = append(ops, message.Op{Do: "add-elements", Table: steer.TableName, Elements: elements(c.Add)})
	}
	return ops
}

func elements(list steer.List[steer.Element]) (out []message.Element) {
	for e := range list.All() {
		out = append(out, message.Element{Set: string(e.Set), Key: hex.EncodeToString(keyOf(e))})
	}
	return out
}

// keyOf encodes an element as the kernel has it: each part in whole registers.
func keyOf(e steer.Element) []byte {
	switch e.Set {
	case steer.SetInterfaces:
		return append([]byte(e.Interface), make([]byte, 16-len(e.Interface))...)
	case steer.SetAddresses4, steer.SetAddresses6:
		return e.Address.AsSlice()
	}
	key := append(e.Address.AsSlice(), e.Port.Protocol, 0, 0, 0)
	return append(binary.BigEndian.AppendUint16(key, e.Port.Number), 0, 0)
}

// elementOf decodes it.
func elementOf(set steer.Set, text string) (steer.Element, error) {
	e := steer.Element{Set: set}
	key, err := hex.DecodeString(text)
	if err != nil {
		return e, fmt.Errorf("element %q of set %s: %w", text, set, err)
	}
	switch set {
	case steer.SetInterfaces:
		e.Interface = strings.TrimRight(string(key), "\x00")
		return e, nil
	case steer.SetPorts4, steer.SetPorts6:
		at := len(key) - 8
		e.Port = desired.Port{Protocol: key[at], Number: binary.BigEndian.Uint16(key[at+4:])}
		key = key[:at]
	}
	e.Address, _ = netip.AddrFromSlice(key)
	return e, nil
}

// Hopeless implements steer.Edge.
func (*steering) Hopeless(err error) bool { return hopeless(err) }

// Tally implements steer.Edge. The model counts nothing, and nobody asks.
func (s *steering) Tally() (map[string]uint64, error) { return nil, nil }

// Watch implements steer.Edge.
func (s *steering) Watch(ctx context.Context, ready chan<- struct{}, hear func(steer.Event)) error {
	return s.kernel.watch(ctx, func() { close(ready) }, func(e message.Event) {
		switch {
		case e.Rule != nil:
			hear(steer.Event{Rule: (*steer.Rule)(e.Rule), Gone: e.Gone})
		case e.Route != nil:
			hear(steer.Event{Route: (*steer.Route)(e.Route), Gone: e.Gone})
		case e.Table == steer.TableName && !e.Own:
			hear(steer.Event{Filter: true})
		}
	})
}

// Finish implements steer.Edge: there is nothing that was kept.
func (*steering) Finish() error { return nil }

// Close implements steer.Edge.
func (s *steering) Close() { s.kernel.Close() }
