// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// cli is what the subcommands share: where they read and write, and the global flags.
type cli struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string

	flags       pki.Context // --server --ca --cert --key
	contextFile string      // --context
	format      output.Format
}

// doubt says, beside an answer, why it may stand otherwise by now; nothing if it is not doubtful.
func (c *cli) doubt(why string) {
	if why != "" {
		_, _ = fmt.Fprintf(c.err, "fairlead: it may stand otherwise by now: %s\n", output.Clean(why)) // nobody is left to tell
	}
}

// print writes the command's answer in the format that was asked for.
func (c *cli) print(v output.Tabler) error { return c.format.Print(c.out, v) }

// commands lists the subcommands in the order of the help.
func commands(c *cli) []*cobra.Command {
	return []*cobra.Command{
		newController(c),
		newAgent(c),
		newInspect(c),
		newDev(c),
		newGet(c),
		newDescribe(c),
		newWhy(c),
		newPlan(c),
		newDrain(c, overAPI),
		newMove(c, overAPI),
		newHolds(c, newHoldsRelease(c, overAPI)),
		newAcceptRewind(c, overAPI),
		newRaft(c),
		newPKI(c),
		newHost(c),
		newMigrate(c),
		newSim(c, shipped),
		newDriver(c),
		newVersion(c),
	}
}

// newRoot makes the command line: global flags, and subcommands.
func newRoot(c *cli, subcommands ...*cobra.Command) *cobra.Command {
	c.format = output.Table
	root := &cobra.Command{
		Use:   "fairlead",
		Short: "A load-balancer control plane for Kubernetes on bare metal",
		Long: "A load-balancer control plane for Kubernetes on bare metal.\n\n" +
			"Commands that talk to a group of controllers find it by flags, then by FAIRLEAD_SERVER, FAIRLEAD_CA,\n" +
			"FAIRLEAD_CERT and FAIRLEAD_KEY, then by a context file: --context, FAIRLEAD_CONTEXT, or the default place.\n" +
			"They exit with 0 when done, 1 when they failed and 2 when the command line is wrong.",
	}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&c.flags.Servers, "server", nil, "host:port of a controller's API; may be repeated, any that answers will do")
	flags.StringVar(&c.flags.CA, "ca", "", "file with the certificates of the group's CA")
	flags.StringVar(&c.flags.Cert, "cert", "", "file with your certificate")
	flags.StringVar(&c.flags.Key, "key", "", "file with the key of your certificate")
	flags.StringVar(&c.contextFile, "context", "", "file that names servers, CA, certificate and key")
	flags.VarP(&c.format, "output", "o", "how to print")
	complete(root, "output", output.Formats()...)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetIn(c.in)
	root.AddCommand(subcommands...)
	return root
}

// complete offers the values of a flag to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // no such flag: this program is wrong
	}
}
