// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
)

func newController(c *cli) *cobra.Command {
	path := "/etc/fairlead/controller.yaml"
	var old lbcfFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run one member of the controller group",
		Long: "Run one member of the controller group until it is told to stop. It leaves its BGP sessions as for a\n" +
			"restart: switches keep its paths, ranked last, until it is back.\n\n" +
			"The flags of LBCF's controller are taken as well, and come before what the file says.",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if old.version {
				format := output.JSON
				return format.Print(c.out, thisBuild())
			}
			conf, err := config.LoadController(path)
			if err != nil {
				return err
			}
			unused, err := old.apply(cmd.Flags(), &conf)
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
			heedMemoryLimit(c.getenv, os.DirFS("/"))
			go saveMuchMemory(cmd.Context(), c.getenv, 2*time.Second)
			m, err := member.Open(conf, thisBuild().Version, machine.Member(machine.Listeners{}), log)
			if err != nil {
				return err
			}
			return m.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&path, "config", path, "configuration file of this member")
	old.add(cmd.Flags())
	return cmd
}
