// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// defaultCADir is where pki looks for the CA when --dir does not tell.
const defaultCADir = "ca"

func newPKI(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pki",
		Short: "Make the CA and certificates of a group",
	}
	cmd.AddCommand(newPKIInit(c), newPKISigner(c), newPKIIssue(c), newPKIEnrol(c), newPKIRotate(c), newPKIRevoke(c), newPKIList(c))
	return cmd
}

// madeCA is what `fairlead pki init` prints.
type madeCA struct {
	CA  string `json:"ca"`
	Key string `json:"key"`
}

// WriteTable writes one file a line.
func (m madeCA) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"ca", m.CA}, [2]string{"key", m.Key + " (keep it secret; whoever has it can be anybody)"})
}

func newPKIInit(c *cli) *cobra.Command {
	var dir string
	var opts pki.CAOptions
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Make a CA in a folder; never overwrites one",
		Example: "  fairlead pki init --dir ca",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if err := pki.Init(dir, opts); err != nil {
				return err
			}
			return c.print(madeCA{CA: filepath.Join(dir, pki.CAFile), Key: filepath.Join(dir, pki.CAKeyFile)})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultCADir, "folder of the CA")
	cmd.Flags().StringVar(&opts.Name, "name", "", "name of the CA (default fairlead)")
	cmd.Flags().DurationVar(&opts.TTL, "ttl", 0, "how long the CA lives (default ten years)")
	return cmd
}

// issued is what `fairlead pki issue` prints.
type issued struct {
	Identity string    `json:"identity"`
	NotAfter time.Time `json:"notAfter"`
	CA       string    `json:"ca"`
	Cert     string    `json:"cert"`
	Key      string    `json:"key"`
	Context  string    `json:"context,omitempty"`
}

// WriteTable writes one fact a line.
func (i issued) WriteTable(w io.Writer) error {
	use := i.Context
	if use != "" {
		use += " (use it with --context or FAIRLEAD_CONTEXT)"
	}
	return output.WriteFields(w,
		[2]string{"identity", i.Identity},
		[2]string{"not after", i.NotAfter.Format(time.RFC3339)},
		[2]string{"ca", i.CA},
		[2]string{"cert", i.Cert},
		[2]string{"key", i.Key},
		[2]string{"context", use},
	)
}

func newPKIIssue(c *cli) *cobra.Command {
	var dir, out string
	var req pki.Request
	cmd := &cobra.Command{
		Use:   "issue ROLE NAME",
		Short: "Make a key and a certificate: " + strings.Join(roleNames(), ", "),
		Long: "Make a key and a certificate signed by the CA in --dir: NAME.key, NAME.crt and ca.crt in --out.\n\n" +
			"Members need --host for every name and address at which they are dialled. For operators and viewers,\n" +
			"--server also writes context.yaml, with which the other commands find the group.",
		Example: "  fairlead pki issue member m1 --host 192.0.2.1 --out m1\n" +
			"  fairlead pki issue operator alice --server 192.0.2.1:7443 --server 192.0.2.2:7443 --out alice",
		Args: issueArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return roleNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Role, req.Name = pki.Role(args[0]), args[1]
			if !person(req.Role) && cmd.Flags().Changed("server") {
				return usagef("--server: it is for the context.yaml of operators and viewers; leave it out for the role %s", req.Role)
			}
			answer, err := issue(dir, out, req, c.flags.Servers)
			if err != nil {
				return err
			}
			return c.print(answer)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultCADir, "folder of the CA")
	cmd.Flags().StringVar(&out, "out", ".", "folder for the new files; those there are replaced")
	cmd.Flags().StringSliceVar(&req.Hosts, "host", nil, "name or address at which the member is dialled; may be repeated")
	cmd.Flags().DurationVar(&req.TTL, "ttl", 0, "how long it lives (default 24h for members, agents and hosts, 2160h for people)")
	return cmd
}

func issueArgs(cmd *cobra.Command, args []string) error {
	if err := arguments(2, 2)(cmd, args); err != nil {
		return err
	}
	if !slices.Contains(roleNames(), args[0]) {
		return usagef("unknown role %q, it is one of %s", args[0], strings.Join(roleNames(), ", "))
	}
	return nil
}

// person tells whether certificates of a role are for people, who find the group by a context file.
func person(role pki.Role) bool { return role == pki.Operator || role == pki.Viewer }

func roleNames() []string {
	var names []string
	for _, role := range pki.Roles() {
		names = append(names, string(role))
	}
	return names
}

// issue makes the files, and a context beside them if the holder is a person and the servers are known.
func issue(dir, out string, req pki.Request, servers []string) (issued, error) {
	if len(servers) > 0 { // judged before anything is written
		if err := (pki.Context{Servers: servers, CA: out, Cert: out, Key: out}).Validate(); err != nil {
			return issued{}, err
		}
	}
	made, err := pki.Issue(dir, req)
	if err != nil {
		return issued{}, err
	}
	files, err := made.Write(out)
	if err != nil {
		return issued{}, err
	}
	answer := issued{
		Identity: made.Identity.String(), NotAfter: made.NotAfter.UTC().Truncate(time.Second),
		CA: files.CA, Cert: files.Cert, Key: files.Key,
	}
	if !person(req.Role) || len(servers) == 0 {
		return answer, nil
	}
	answer.Context = filepath.Join(out, contextFileName)
	found := pki.Context{Servers: servers, CA: files.CA, Cert: files.Cert, Key: files.Key}
	return answer, found.Save(answer.Context)
}
