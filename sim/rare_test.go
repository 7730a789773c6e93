// SPDX-License-Identifier: Apache-2.0

package sim_test

import "testing"

// What operators do once in years holds: they upgrade, restore a backup, recover what is left of a group.
func TestRareScenariosHold(t *testing.T) {
	t.Parallel()
	m := shipped(t)
	hold(t, m, "testdata/rare/*.yaml", 2)
	hold(t, m, "mutants/scenarios/upgrade*.yaml", 2)
	hold(t, m, "mutants/scenarios/stray-*.yaml", 2)
	hold(t, m, "mutants/scenarios/flipped-follower.yaml", 1)
}

// Who answers for addresses on segments, through what upsets elections elsewhere: the faults that kube-vip's own suite scripts, and
// some more.
func TestSegmentScenariosHold(t *testing.T) {
	t.Parallel()
	hold(t, shipped(t), "testdata/segments/*.yaml", 10)
}

// Policies, ClusterIPs and node ports at sockets, through what planted bugs there need to be seen.
func TestSocketScenariosHold(t *testing.T) {
	t.Parallel()
	hold(t, shipped(t), "mutants/scenarios/sockets*.yaml", 5)
}

// Listed addresses that are probed, through what planted bugs there need to be seen, and without a group.
func TestProbeScenariosHold(t *testing.T) {
	t.Parallel()
	m := shipped(t)
	hold(t, m, "mutants/scenarios/probes*.yaml", 1)
	hold(t, m, "testdata/probes/*.yaml", 1)
}
