// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/internal/migrate"
	"fairlead.io/fairlead/k8s/client"
	old "fairlead.io/fairlead/k8s/migrate"
)

func newMigrate(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Plan the way from another implementation to Fairlead"}
	cmd.AddCommand(newMigrateKLC(c), newMigrateLBCF(c))
	return cmd
}

// oldNamespace is where kube-loadbalancer-controller lives.
const oldNamespace = "kube-system"

// migration is what `fairlead migrate` prints.
type migration struct {
	migrate.Plan
	// Out is the folder that was written; empty after a dry run.
	Out string `json:"out"`
}

// WriteTable tells the plan, or where it is.
func (m migration) WriteTable(w io.Writer) error {
	if m.Out == "" {
		return m.Plan.WriteTable(w)
	}
	if err := m.WriteSummary(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nNothing was changed in the cluster. The %d steps are in %s; begin there.\n", len(m.Steps), filepath.Join(m.Out, "STEPS.md"))
	return err
}

func newMigrateKLC(c *cli) *cobra.Command {
	var kubeconfig string
	var dryRun bool
	var o migrate.Options
	var r migrate.Rendering
	cmd := &cobra.Command{
		Use:   "kube-loadbalancer-controller",
		Short: "Plan the way from kube-loadbalancer-controller",
		Long: "Read what kube-loadbalancer-controller left in the cluster and write, into the folder --out, what Fairlead needs in its\n" +
			"place and the steps that lead there without an address ever losing its paths, each with its way back. The cluster is\n" +
			"only read. With --dry-run the steps are printed and nothing is written.",
		Example: "  fairlead migrate kube-loadbalancer-controller --dry-run\n" +
			"  fairlead migrate kube-loadbalancer-controller --out migration --base ../../deploy/base --image registry.example.com/fairlead:v1",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				kubeconfig = defaultKubeconfig(c.getenv)
			}
			r.Token = rand.Text()
			answer, err := planMigration(cmd.Context(), kubeconfig, o, r, dryRun)
			if err != nil {
				return err
			}
			return c.print(answer)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file of an account that may read the cluster (default $KUBECONFIG, then ~/.kube/config)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the steps, write nothing")
	cmd.Flags().StringVar(&o.Out, "out", "fairlead-migration", "folder for the files; must be empty or absent")
	cmd.Flags().StringSliceVar(&o.Members, "members", nil, "nodes that become members (default up to three control-plane nodes)")
	cmd.Flags().BoolVar(&o.AllowPending, "allow-pending", false, "go on although some Services will lose their address")
	cmd.Flags().StringVar(&r.Base, "base", "../../deploy/base", "folder deploy/base, as seen from the folders in --out")
	cmd.Flags().StringVar(&r.Image, "image", "registry.example.com/fairlead:latest", "image of Fairlead")
	return cmd
}

func defaultKubeconfig(getenv func(string) string) string {
	if path := getenv("KUBECONFIG"); path != "" {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/" // without a home the file is not there either, and its name tells where it was looked for
	}
	return filepath.Join(home, ".kube", "config")
}

// planMigration reads the cluster, decides, and writes the files unless it is a dry run.
func planMigration(ctx context.Context, kubeconfig string, o migrate.Options, r migrate.Rendering, dryRun bool) (migration, error) {
	api, err := client.Open(client.Options{Kubeconfig: kubeconfig})
	if err != nil {
		return migration{}, err
	}
	in, err := old.Read(ctx, api, oldNamespace)
	if err != nil {
		return migration{}, err
	}
	plan, err := migrate.Decide(in, o)
	if err != nil || dryRun {
		return migration{Plan: plan}, err
	}
	return migration{Plan: plan, Out: o.Out}, migrate.Write(o.Out, migrate.Files(plan, in, r))
}
