// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// revoked is what `fairlead pki revoke` prints.
type revoked struct {
	Of      string `json:"of"`
	Name    string `json:"name"`
	Revoked bool   `json:"revoked"`
}

// WriteTable writes one fact.
func (r revoked) WriteTable(w io.Writer) error {
	if r.Revoked {
		return output.WriteFields(w, [2]string{"revoked", r.Of + " " + r.Name})
	}
	return output.WriteFields(w, [2]string{"taken back", r.Of + " " + r.Name})
}

func newPKIRevoke(c *cli) *cobra.Command {
	req := &fairleadv1.RevokeRequest{}
	var ch change
	var serial string
	cmd := &cobra.Command{
		Use:   "revoke ROLE NAME | --serial NUMBER",
		Short: "Make certificates good for nothing: one, or all that somebody has in a role",
		Long: "Make certificates good for nothing, at once and on connections that are open: one by its serial number, or all that somebody\n" +
			"has in a role (docs/revoke.md). Nobody of that role and name gets another one, until --undo takes it back: those that are\n" +
			"issued from then on are good, and with --all those from before as well.",
		Example: "  fairlead pki revoke agent n3 --reason \"key stolen\"\n" +
			"  fairlead pki revoke --serial $(openssl x509 -noout -serial -in alice.crt | cut -d= -f2)\n" +
			"  fairlead pki revoke agent n3 --undo",
		Args: arguments(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if req.Of, req.Name, err = revocable(args, serial); err != nil {
				return err
			}
			if req.GetAll() && !req.GetUndo() {
				return usagef("--all says what --undo takes back; give both")
			}
			req.Force, req.Reason = ch.force, ch.reason
			what := "pki revoke " + req.GetOf() + " " + req.GetName()
			_, err = ask(cmd.Context(), c, what, changeWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.RevokeResponse, error) {
				return client.Enrol.Revoke(ctx, req)
			})
			if err != nil {
				return err
			}
			return c.print(revoked{req.GetOf(), req.GetName(), !req.GetUndo()})
		},
	}
	cmd.Flags().StringVar(&serial, "serial", "", "one certificate, by its serial number in hexadecimal")
	cmd.Flags().BoolVar(&req.Undo, "undo", false, "take it back")
	cmd.Flags().BoolVar(&req.All, "all", false, "with --undo: certificates from before are good again, too")
	ch.addFlags(cmd, "do it even if it is a member that the group has")
	return cmd
}

// revocable reads what shall be revoked. openssl writes serial numbers in capitals, browsers with colons.
func revocable(args []string, serial string) (of, name string, err error) {
	switch {
	case serial != "" && len(args) == 0:
		return "serial", strings.TrimLeft(strings.ReplaceAll(strings.ToLower(serial), ":", ""), "0"), nil
	case serial == "" && len(args) == 2:
		return args[0], args[1], nil
	}
	return "", "", usagef("want ROLE NAME, or --serial NUMBER")
}

func newPKIList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List what was revoked, by whom and why, and members that were removed",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, _ := records.Find("revocations")
			list, err := c.get(cmd.Context(), kind, &fairleadv1.GetRequest{})
			if err != nil {
				return err
			}
			return c.print(list)
		},
	}
}
