// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/scenario"
)

// worldFlags say what kind of worlds are drawn, or which one is taken as it is.
type worldFlags struct {
	duration       time.Duration
	members, nodes int
	services       int
	segments       int
	file           string
}

func (w *worldFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.duration, "duration", time.Minute, "virtual time of a run, in which faults begin and end")
	cmd.Flags().IntVar(&w.members, "members", 3, "members of the group, from 1 to 9")
	cmd.Flags().IntVar(&w.nodes, "nodes", 5, "nodes of the cluster, from 1 to 50")
	cmd.Flags().IntVar(&w.services, "services", 0, "Services at the beginning, up to 200; 0: drawn")
	cmd.Flags().IntVar(&w.segments, "segments", 0, "segments that nodes are in and answer for addresses on (L2), up to 2")
}

// options checks what is to be drawn.
func (w *worldFlags) options() (scenario.Options, error) {
	for _, f := range []struct {
		name              string
		have, least, most int
	}{{"members", w.members, 1, sim.MostMembers}, {"nodes", w.nodes, 1, sim.MostNodes}, {"services", w.services, 0, sim.MostServices}, {"segments", w.segments, 0, sim.MostSegments}} {
		if f.have < f.least || f.have > f.most {
			return scenario.Options{}, usagef("--%s %d: want %d to %d", f.name, f.have, f.least, f.most)
		}
	}
	if w.duration < sim.LeastDuration || w.duration > sim.MostDuration {
		return scenario.Options{}, usagef("--duration %v: want %v to %v", w.duration, sim.LeastDuration, sim.MostDuration)
	}
	return scenario.Options{Duration: w.duration, Members: w.members, Nodes: w.nodes, Services: w.services, Segments: w.segments}, nil
}

// read reads the scenario of the file.
func (w *worldFlags) read() (scenario.Scenario, error) {
	s, err := scenario.Read(w.file)
	if err != nil {
		return s, usagef("--scenario: %w", err)
	}
	return s, nil
}

// alone refuses flags beside one that says all that they would.
func alone(cmd *cobra.Command, one, why string, others ...string) error {
	if !cmd.Flags().Changed(one) {
		return nil
	}
	for _, flag := range others {
		if cmd.Flags().Changed(flag) {
			return usagef("--%s does not go with --%s: %s", flag, one, why)
		}
	}
	return nil
}

// needs refuses flags that say how something is done which is not asked for.
func needs(cmd *cobra.Command, one string, flags ...string) error {
	if cmd.Flags().Changed(one) {
		return nil
	}
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			return usagef("--%s says nothing without --%s", flag, one)
		}
	}
	return nil
}

// drawing are the flags that a scenario from a file leaves nothing to.
var drawing = []string{"duration", "members", "nodes", "services", "segments"}
