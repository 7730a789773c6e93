// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/internal/testkit"
)

// answersOf are what members answer who is asked, by how much each of them says: one that says more wins, wherever the
// member is in the list.
var answersOf = [][]error{
	{errors.New("connection refused"), context.DeadlineExceeded, &admin.Refusal{Code: admin.NotLeader}, &admin.Refusal{Code: admin.Stopped}},
	{&admin.Refusal{Code: admin.NotReady, Why: "an operator removed member m1"}, &admin.Refusal{Code: admin.Invalid, Why: "its release is old"}},
	{&admin.Refusal{Code: admin.Removed, Why: "removed"}, &admin.Refusal{Code: admin.RolledBack, Why: "rolled back"}},
}

// What is for good, such as that a server was removed, it hears from whoever knows, and what the leader says of the question
// it hears whoever else is off.
func TestPropertyAskingTheOthersHearsWhatSaysMost(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		names := []string{"m1", "m2", "m3", "m4", "m5"}
		says, most := map[string]error{}, 0
		for _, name := range names[1:] {
			rank := rapid.IntRange(0, len(answersOf)-1).Draw(t, "rank of "+name)
			says[name], most = rapid.SampledFrom(answersOf[rank]).Draw(t, name), max(most, rank)
		}
		clients := map[*admin.Client]string{}
		o := &others{names: names, apiOf: func(name string) string { return name }, clients: admin.NewPeersOver(func(api string) *admin.Client {
			c := &admin.Client{}
			clients[c] = api
			return c
		})}
		got := o.ask(t.Context(), admin.Member{Name: "m1"}, func(_ context.Context, c *admin.Client) error { return says[clients[c]] })
		if !slices.ContainsFunc(answersOf[most], func(want error) bool { return got.Error() == clusterError(want).Error() }) {
			t.Errorf("it hears %v of %v", got, says)
		}
		final := errors.Is(got, cluster.ErrRemoved) || errors.Is(got, cluster.ErrRolledBack)
		if final != (most == len(answersOf)-1) {
			t.Errorf("for good: %v, of %v", final, says)
		}
	})
}
