// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// description is what `fairlead describe` prints.
type description struct {
	Kind     string          `json:"kind"`
	Name     string          `json:"name"`
	Revision revision        `json:"revision"`
	Document json.RawMessage `json:"document"` // null: it is gone, only its history is left
	History  []transition    `json:"history"`  // oldest first
}

// transition is one committed change.
type transition struct {
	Revision revision `json:"revision"`
	Term     uint64   `json:"term"`
	Time     string   `json:"time"`
	Actor    string   `json:"actor"`
	Reason   string   `json:"reason"`
	Change   string   `json:"change"`
}

// WriteTable writes the object, then its history.
func (d description) WriteTable(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s %s at revision %s\n\n", d.Kind, output.Clean(d.Name), d.Revision); err != nil {
		return err
	}
	if err := d.writeDocument(w); err != nil {
		return err
	}
	if len(d.History) == 0 {
		_, err := fmt.Fprintln(w, "\nNo history is kept.")
		return err
	}
	if _, err := fmt.Fprintln(w, "\nHistory, oldest first:"); err != nil {
		return err
	}
	rows := make([][]string, 0, len(d.History))
	for _, t := range d.History {
		rows = append(rows, []string{t.Time, t.Revision.String(), number(t.Term), t.Actor, t.Change, t.Reason})
	}
	return output.WriteRows(w, []string{"TIME", "REVISION", "TERM", "ACTOR", "CHANGE", "REASON"}, rows)
}

func (d description) writeDocument(w io.Writer) error {
	if d.Document == nil {
		_, err := fmt.Fprintln(w, "It is gone; only its history is left.")
		return err
	}
	text, err := yaml.JSONToYAML(d.Document) // escapes what steers a terminal
	if err != nil {
		return fmt.Errorf("document of %s %s: %w", d.Kind, d.Name, err)
	}
	_, err = w.Write(text)
	return err
}

func newDescribe(c *cli) *cobra.Command {
	req := &fairleadv1.DescribeRequest{}
	cmd := &cobra.Command{
		Use:               "describe KIND NAME",
		Short:             "Show an object with its history: every change, when, by whom and why",
		Example:           "  fairlead describe service shop/web",
		Args:              kindAndName(2),
		ValidArgsFunction: c.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, _ := records.Find(args[0])
			req.Kind, req.Name = kind.Name, args[1]
			what := "describe " + kind.Name + " " + args[1]
			answer, err := ask(cmd.Context(), c, what, lookWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.DescribeResponse, error) {
				return client.Record.Describe(ctx, req)
			})
			if err != nil {
				return err
			}
			if answer.GetDocument() == "" && len(answer.GetHistory()) == 0 {
				return fmt.Errorf("%s: there is none, and none is remembered; `fairlead get %s` lists them", what, kind.Name)
			}
			c.doubt(answer.GetDoubt())
			return c.print(describe(kind, args[1], answer))
		},
	}
	addLinearizable(cmd, &req.Linearizable)
	return cmd
}

func describe(kind records.Kind, name string, answer *fairleadv1.DescribeResponse) description {
	d := description{Kind: kind.Name, Name: name, Revision: revisionOf(answer.GetRevision()), History: []transition{}}
	if answer.GetDocument() != "" {
		d.Document = json.RawMessage(answer.GetDocument())
	}
	for _, t := range answer.GetHistory() {
		d.History = append(d.History, transition{
			Revision: revisionOf(t.GetRevision()), Term: t.GetTerm(), Time: t.GetTime(),
			Actor: t.GetActor(), Reason: t.GetReason(), Change: t.GetChange(),
		})
	}
	return d
}
