// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
)

func newController(c *cli) *cobra.Command {
	path := "/etc/fairlead/controller.yaml"
	var lbcf lbcfFlags
	var balancing config.OldFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run one member of the controller group",
		Long: "Run one member of the controller group until it is told to stop. It leaves its BGP sessions as for a\n" +
			"restart: switches keep its paths, ranked last, until it is back.\n\n" +
			"The flags of LBCF's controller are taken as well, and come before what the file says. Flags and environment of\n" +
			"the controller of elf-io's balancing count where the file says nothing.",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lbcf.version {
				format := output.JSON
				return format.Print(c.out, thisBuild())
			}
			old, err := config.ReadOldController(c.getenv, balancing)
			if err != nil {
				return err
			}
			conf, err := config.LoadControllerOver(old, path)
			if err != nil {
				return err
			}
			unused, err := lbcf.apply(cmd.Flags(), &conf)
			if err != nil {
				return fmt.Errorf("%s with the flags given: %w", path, err)
			}
			level, err := config.Level(conf.Log)
			if err != nil {
				return err
			}
			log := slog.New(slog.NewJSONHandler(c.err, &slog.HandlerOptions{Level: level}))
			for _, flag := range unused {
				log.Warn("flag has no effect", "flag", flag)
			}
			for _, n := range old.Notes {
				log.Warn("configuration without effect on this member", "what", n.What, "instead", n.Instead)
			}
			heedMemoryLimit(c.getenv, os.DirFS("/"))
			go saveMuchMemory(cmd.Context(), c.getenv, 2*time.Second)
			go shedProgram(cmd.Context(), shedEvery)
			m, err := member.Open(conf, thisBuild().Version, machine.Member(machine.Listeners{}), log)
			if err != nil {
				return err
			}
			return m.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&path, "config", path, "configuration file of this member")
	lbcf.add(cmd.Flags())
	addBalancingFlags(cmd.Flags(), &balancing)
	return cmd
}

// addBalancingFlags takes those of the controller of elf-io's balancing (balancing §22).
func addBalancingFlags(set *pflag.FlagSet, to *config.OldFlags) {
	set.StringVar(&to.ConfigPath, "config-path", "", "conf.yml of elf-io's balancing; controller.yaml goes before it")
	set.StringVar(&to.CACert, "tls-ca-cert", "", "elf-io's balancing: ca.crt in the folder of --tls-server-cert")
	set.StringVar(&to.ServerCert, "tls-server-cert", "", "elf-io's balancing, as admission.certDir in the file: FOLDER/tls.crt")
	set.StringVar(&to.Key, "tls-server-key", "", "elf-io's balancing, as admission.certDir in the file: FOLDER/tls.key")
}
