// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
)

func newAgent(c *cli) *cobra.Command {
	path, name, old := "/etc/fairlead/agent.yaml", "", ""
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of one node",
		Long: "Run the agent of one node until it is told to stop. It leaves the kernel as it is then: traffic goes on, and\n" +
			"the next agent takes over what is there. `fairlead agent cleanup` removes it.",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, log, err := agentConfig(c, path, name, old)
			if err != nil {
				return err
			}
			heedMemoryLimit(c.getenv, os.DirFS("/"))
			saveMemory(c.getenv)
			go shedProgram(cmd.Context(), shedEvery)
			p, err := node.Open(conf, machine.Agent(), log)
			if err != nil {
				return err
			}
			return p.Run(cmd.Context())
		},
	}
	cmd.PersistentFlags().StringVar(&path, "config", path, "configuration file of this agent")
	cmd.PersistentFlags().StringVar(&name, "node", "", "name of this node, where one file serves many")
	cmd.PersistentFlags().StringVar(&old, "config-path", "", "conf.yml of elf-io's balancing; agent.yaml goes before it (docs/outside.md)")
	cmd.AddCommand(newAgentCleanup(c, &path, &name, &old), newAgentIdle())
	return cmd
}

func newAgentCleanup(c *cli, path, name, old *string) *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove everything that the agent of this node made",
		Long: "Remove everything that the agent of this node made: rules, routes, tables, sysctls, and the files in its state\n" +
			"folder. What others made stays. It refuses while the agent runs.",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, log, err := agentConfig(c, *path, *name, *old)
			if err != nil {
				return err
			}
			return node.Cleanup(cmd.Context(), conf, machine.Agent(), log)
		},
	}
}

// newAgentIdle is what pods do whose node is clean: those of a DaemonSet start over when they end, and an image of somebody else's may not
// be there.
func newAgentIdle() *cobra.Command {
	return &cobra.Command{
		Use:    "idle",
		Hidden: true,
		Short:  "Do nothing until it is told to stop, as pods of deploy/uninstall/cleanup.yaml do whose node is clean",
		Args:   arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			<-cmd.Context().Done()
			return nil
		},
	}
}

func agentConfig(c *cli, path, name, oldPath string) (config.Agent, *slog.Logger, error) {
	old, err := config.ReadOld(c.getenv, oldPath)
	if err != nil {
		return config.Agent{}, nil, err
	}
	conf, err := config.LoadAgentOver(old, path, name)
	if err != nil {
		return config.Agent{}, nil, err
	}
	conf.Reread = func() (config.Agent, error) {
		old, err := config.ReadOld(c.getenv, oldPath)
		if err != nil {
			return config.Agent{}, err
		}
		return config.LoadAgentOver(old, path, name)
	}
	level, err := config.Level(conf.Log)
	if err != nil {
		return config.Agent{}, nil, err
	}
	log := slog.New(slog.NewJSONHandler(c.err, &slog.HandlerOptions{Level: level}))
	for _, n := range old.Notes {
		if n.What != "KUBECONFIG" || conf.OutOfCluster { // elsewhere it may be there for something else
			log.Warn("configuration without effect on this agent", "what", n.What, "instead", n.Instead)
		}
	}
	return conf, log, nil
}
