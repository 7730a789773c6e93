// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// objects is what `fairlead get` prints.
type objects struct {
	Kind     string            `json:"kind"`
	Revision revision          `json:"revision"`
	Items    []json.RawMessage `json:"items"` // see api/records
	of       records.Kind
}

// WriteTable writes an object a line.
func (o objects) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(o.Items))
	for _, item := range o.Items {
		cells, err := row(o.of, item)
		if err != nil {
			return err
		}
		rows = append(rows, cells)
	}
	return output.WriteRows(w, header(o.of), rows)
}

func newGet(c *cli) *cobra.Command {
	req := &fairleadv1.GetRequest{}
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "List the objects of a kind, or show one",
		Long: "List the objects of a kind, or show one, as the answering member has applied them.\n\n" +
			"The kinds, and what else they may be called:\n\n" + kindsHelp(),
		Example: "  fairlead get services\n" +
			"  fairlead get routes 203.0.113.10/32 -o json",
		Args:              kindAndName(1),
		ValidArgsFunction: c.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, _ := records.Find(args[0])
			if len(args) > 1 {
				req.Name = args[1]
			}
			found, err := c.get(cmd.Context(), kind, req)
			if err != nil {
				return err
			}
			return c.print(found)
		},
	}
	cmd.Flags().StringToStringVar(&req.Filter, "filter", nil, "FIELD=VALUE of the documents shown; may be repeated, all must match")
	addLinearizable(cmd, &req.Linearizable)
	return cmd
}

func addLinearizable(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "linearizable", false, "show everything that was committed before; needs a quorum")
}

// kindAndName wants a kind that exists, and a name at least if least is 2.
func kindAndName(least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			if _, ok := records.Find(args[0]); !ok {
				return usagef("unknown kind %q; it is one of %s", args[0], strings.Join(records.Names(), ", "))
			}
		}
		return arguments(least, 2)(cmd, args)
	}
}

func kindsHelp() string {
	var b strings.Builder
	for _, k := range records.Kinds() {
		fmt.Fprintf(&b, "  %-15s %s\n", k.Name, strings.Join(k.Aliases, ", "))
	}
	return strings.TrimRight(b.String(), "\n")
}

// get reads all objects that are asked for, page by page. Errors: one was asked for by name and is not there.
func (c *cli) get(ctx context.Context, kind records.Kind, req *fairleadv1.GetRequest) (objects, error) {
	req.Kind = kind.Name
	what := strings.TrimSpace("get " + kind.Name + " " + req.GetName())
	doubt := ""
	found, err := ask(ctx, c, what, lookWithin, func(ctx context.Context, client *admin.Client) (objects, error) {
		all := objects{Kind: kind.Name, Items: []json.RawMessage{}, of: kind}
		for {
			page, err := client.Record.Get(ctx, req)
			if err != nil {
				return objects{}, err
			}
			all.Revision, doubt = revisionOf(page.GetRevision()), page.GetDoubt()
			for _, document := range page.GetDocuments() {
				all.Items = append(all.Items, json.RawMessage(document))
			}
			switch {
			case len(all.Items) == 0 && !page.GetMore() && req.GetName() != "":
				return objects{}, fmt.Errorf("there is none; `fairlead get %s` lists what there is", kind.Name)
			case !page.GetMore():
				return all, nil
			}
			req.After = page.GetNext()
		}
	})
	if err == nil {
		c.doubt(doubt)
	}
	return found, err
}
