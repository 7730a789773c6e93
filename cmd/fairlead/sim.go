// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/vm"
)

func newSim(c *cli, load loadSimulator) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the shipped code in simulated worlds under faults, and judge it",
		Long: "Run the shipped code in simulated worlds under faults, and judge it.\n\n" +
			"Members and agents run as they ship; the network, disks, Kubernetes, switches, kernels and load balancers around\n" +
			"them are models. One integer, the seed, repeats a run event by event.",
	}
	cmd.AddCommand(newSimRun(c, load), newSimReplay(c, load), newSimList(c))
	return cmd
}

// simulator is package sim with the program of members and agents at hand.
type simulator struct {
	program *vm.Module
	play    sim.Player
	close   func()
}

// loadSimulator gives a simulator that knows a scenario by the file that holds it; none if it was drawn.
type loadSimulator func(ctx context.Context, file string) (simulator, error)

// shipped has the simulator run what ships.
func shipped(ctx context.Context, file string) (simulator, error) {
	module, err := sim.Load(ctx, program.Options{})
	if ctx.Err() != nil {
		return simulator{}, ctx.Err() // whatever it was doing then
	}
	if err != nil {
		return simulator{}, err
	}
	return simulator{
		program: module,
		play:    sim.Setting{Program: module, File: file}.Player(),
		close:   func() { _ = module.Close(context.WithoutCancel(ctx)) }, // the process ends
	}, nil
}
