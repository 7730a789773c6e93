// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/fault"
)

// simParts is what `fairlead sim list` prints.
type simParts struct {
	Faults   []simPart `json:"faults"`
	Checkers []simPart `json:"checkers"`
}

// simPart is a fault or a checker.
type simPart struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Missing says why a rule is not checked yet; empty: it is.
	Missing string `json:"missing,omitempty"`
}

// WriteTable implements output.Tabler.
func (s simParts) WriteTable(w io.Writer) error {
	rows := [][]string{}
	for _, f := range s.Faults {
		rows = append(rows, []string{"fault", f.Name, f.Text})
	}
	for _, c := range s.Checkers {
		text := c.Text
		if c.Missing != "" {
			text += " (not checked: " + c.Missing + ")"
		}
		rows = append(rows, []string{"checker", c.Name, text})
	}
	return output.WriteRows(w, []string{"WHAT", "NAME", "TEXT"}, rows)
}

func newSimList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List what can go wrong in a simulated world, and the rules that it is judged by",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			parts := simParts{}
			for _, k := range fault.All() {
				parts.Faults = append(parts.Faults, simPart{Name: k.Name, Text: k.Text})
			}
			for _, r := range check.Rules() {
				parts.Checkers = append(parts.Checkers, simPart{Name: r.ID, Text: r.Text, Missing: r.Missing})
			}
			return c.print(parts)
		},
	}
}
