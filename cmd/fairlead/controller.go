// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
)

func newController(c *cli) *cobra.Command {
	path := "/etc/fairlead/controller.yaml"
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run one member of the controller group",
		Long: "Run one member of the controller group until it is told to stop. It leaves its BGP sessions as for a\n" +
			"restart: switches keep its paths, ranked last, until it is back.",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := config.LoadController(path)
			if err != nil {
				return err
			}
			level, err := config.Level(conf.Log)
			if err != nil {
				return err
			}
			log := slog.New(slog.NewJSONHandler(c.err, &slog.HandlerOptions{Level: level}))
			m, err := member.Open(conf, thisBuild().Version, machine.Member(machine.Listeners{}), log)
			if err != nil {
				return err
			}
			return m.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&path, "config", path, "configuration file of this member")
	return cmd
}
