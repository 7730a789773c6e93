// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/smallfile"
)

// inspectedDifferences is what `fairlead inspect diff` prints: nothing where the kernel holds what it shall.
type inspectedDifferences struct {
	Places []inspectedDifference `json:"places"`
}

// inspectedDifference is a place where the kernel does not hold what it shall.
type inspectedDifference struct {
	Place string `json:"place"`
	Is    string `json:"is"` // what calls get; empty: nothing is resolved
	Shall string `json:"shall"`
}

// WriteTable writes a line a place.
func (d inspectedDifferences) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(d.Places))
	for _, one := range d.Places {
		rows = append(rows, []string{one.Place, one.Is, one.Shall})
	}
	return output.WriteRows(w, []string{"PLACE", "IS", "SHALL BE"}, rows)
}

// diff compares the kernel with what the agent was told last, and found out of listed addresses itself.
func (in *inspection) diff() (output.Tabler, error) {
	is, err := in.tables.Rows()
	if err != nil {
		return nil, err
	}
	c := node.SockOptions(in.conf, sock.Capacity{}, nil, nil).Config
	if c.Usable, err = usableBy(in.conf); err != nil {
		return nil, err
	}
	shall, err := sock.Shall(c, is, in.state)
	if err != nil {
		return nil, err
	}
	out := inspectedDifferences{Places: []inspectedDifference{}}
	either := sock.Rows{Places: maps.Clone(is.Places)}
	maps.Copy(either.Places, shall.Places)
	for _, at := range either.InOrder() {
		if a, b := in.said(is, at), in.said(shall, at); a != b {
			out.Places = append(out.Places, inspectedDifference{at.String(), a, b})
		}
	}
	return out, nil
}

// said is all that a row says of a place, in words.
func (in *inspection) said(rows sock.Rows, at sock.Place) string {
	row, ok := rows.Places[at]
	if !ok {
		return ""
	}
	text := in.choice(rows, at, row.First)
	if row.First.Limited || row.First.Spares {
		text += ", else " + in.choice(rows, at, row.Then)
	}
	return text
}

func (in *inspection) choice(rows sock.Rows, at sock.Place, c sock.Choice) string {
	one := in.place(rows, at, c)
	text := one.Verdict
	if len(one.Endpoints) > 0 {
		text += " " + endpointsText(one.Endpoints)
	}
	if one.AffinitySeconds > 0 {
		text += ", kept for " + affinityText(one.AffinitySeconds)
	}
	return fmt.Sprintf("%s (%s, %s)", text, one.Service, one.Mode)
}

// usableBy are the listed addresses that new connections may get, by what the agent wrote down of them; nil where it wrote nothing.
func usableBy(conf config.Agent) (func(*desired.Policy, desired.Capture, []netip.Addr) []netip.Addr, error) {
	states, err := thoughtOf(conf)
	if err != nil || states == nil {
		return nil, err
	}
	bad := map[[3]string]bool{}
	for _, s := range states {
		bad[[3]string{s.Policy, s.Address, s.Port}] = s.Opinion == health.Bad.String() && !s.Open
	}
	return func(d *desired.Policy, at desired.Capture, addresses []netip.Addr) []netip.Addr {
		return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool {
			there := sock.Place{Address: a, Port: at.Target, Protocol: at.Port.Protocol}.String()
			return bad[[3]string{d.Name, a.String(), there[strings.LastIndex(there, ":")+1:]}]
		})
	}, nil
}

// thoughtOf is what the agent wrote down of listed addresses; nil where it wrote nothing.
func thoughtOf(conf config.Agent) ([]health.State, error) {
	data, err := smallfile.Read(filepath.Join(conf.StateDir, node.ProbesFile), 64<<20)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	states := []health.State{}
	if err := json.Unmarshal(data, &states); err != nil {
		return nil, fmt.Errorf("inspect: %s: %w", node.ProbesFile, err)
	}
	return states, nil
}
