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
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// objects is what `fairlead get KIND` prints.
type objects struct {
	Kind     string            `json:"kind"`
	Revision revision          `json:"revision"`
	Items    []json.RawMessage `json:"items"`
	of       kind
}

// WriteTable writes an object a line.
func (o objects) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(o.Items))
	for _, item := range o.Items {
		row, err := o.of.row(item)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return output.WriteRows(w, o.of.header(), rows)
}

// object is what `fairlead get KIND NAME` prints: in JSON and YAML the document itself.
type object struct{ objects }

// MarshalJSON gives the one document.
func (o object) MarshalJSON() ([]byte, error) { return o.Items[0], nil }

func newGet(c *cli) *cobra.Command {
	filter := map[string]string{}
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
			k, _ := kindNamed(args[0])
			if len(args) == 1 {
				list, err := c.list(cmd.Context(), k, filter)
				if err != nil {
					return err
				}
				return c.print(list)
			}
			one, err := c.one(cmd.Context(), k, args[1], filter)
			if err != nil {
				return err
			}
			return c.print(one)
		},
	}
	cmd.Flags().StringToStringVar(&filter, "filter", nil, "FIELD=VALUE of the documents shown; may be repeated, all must match")
	return cmd
}

// kindAndName wants a kind that exists, and a name at least if least is 2.
func kindAndName(least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			if _, ok := kindNamed(args[0]); !ok {
				return usagef("unknown kind %q; it is one of %s", args[0], strings.Join(kindNames(), ", "))
			}
		}
		return arguments(least, 2)(cmd, args)
	}
}

// list reads all objects of a kind, page by page.
func (c *cli) list(ctx context.Context, k kind, filter map[string]string) (objects, error) {
	return ask(ctx, c, "get "+k.name, lookWithin, func(ctx context.Context, client *admin.Client) (objects, error) {
		all := objects{Kind: k.name, Items: []json.RawMessage{}, of: k}
		req := &fairleadv1.GetRequest{Kind: k.name, Filter: filter}
		for {
			page, err := client.Record.Get(ctx, req)
			if err != nil {
				return objects{}, err
			}
			all.Revision = revisionOf(page.GetRevision())
			for _, document := range page.GetDocuments() {
				all.Items = append(all.Items, json.RawMessage(document))
			}
			if !page.GetMore() || len(page.GetDocuments()) == 0 {
				return all, nil
			}
			if req.After, err = k.nameOf(all.Items[len(all.Items)-1]); err != nil {
				return objects{}, err
			}
		}
	})
}

// one reads the object of that name.
func (c *cli) one(ctx context.Context, k kind, name string, filter map[string]string) (object, error) {
	what := "get " + k.name + " " + name
	page, err := ask(ctx, c, what, lookWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.GetResponse, error) {
		return client.Record.Get(ctx, &fairleadv1.GetRequest{Kind: k.name, Name: name, Filter: filter})
	})
	if err != nil {
		return object{}, err
	}
	if len(page.GetDocuments()) != 1 {
		return object{}, fmt.Errorf("%s: there is none; `fairlead get %s` lists them", what, k.name)
	}
	return object{objects{
		Kind: k.name, Revision: revisionOf(page.GetRevision()), of: k,
		Items: []json.RawMessage{json.RawMessage(page.GetDocuments()[0])},
	}}, nil
}
