// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/internal/testkit"
)

func genConfiguration() *rapid.Generator[[]admin.Member] {
	return rapid.Custom(func(t *rapid.T) []admin.Member {
		n := rapid.IntRange(1, 6).Draw(t, "members")
		members := make([]admin.Member, n)
		for i := range members {
			id := string(rune('a' + i))
			members[i] = admin.Member{
				ID: id + "-1", Name: id,
				Voter:   i == 0 || rapid.Bool().Draw(t, id+" votes"),
				Healthy: i == 0 || rapid.Bool().Draw(t, id+" is healthy"),
				Leader:  i == 0,
			}
		}
		return members
	})
}

// model is an independent account of who could agree: it knows nothing of halves, it lets voters pair off.
// The healthy are a majority if each of the unhealthy can be paired with one of them and one is left over.
func canAgree(members map[string]admin.Member) bool {
	var healthy, unhealthy []string
	for id, member := range members {
		switch {
		case !member.Voter:
		case member.Healthy:
			healthy = append(healthy, id)
		default:
			unhealthy = append(unhealthy, id)
		}
	}
	for len(unhealthy) > 0 && len(healthy) > 0 {
		healthy, unhealthy = healthy[1:], unhealthy[1:]
	}
	return len(healthy) > 0
}

func byID(members []admin.Member) map[string]admin.Member {
	out := map[string]admin.Member{}
	for _, member := range members {
		out[member.ID] = member
	}
	return out
}

// after carries a change out on the model.
func after(members []admin.Member, verb admin.Verb, id string) map[string]admin.Member {
	out := byID(members)
	member, known := out[id]
	if !known {
		member = admin.Member{ID: id}
	}
	switch verb {
	case admin.AddVoter:
		member.Voter = true
		out[id] = member
	case admin.AddNonvoter, admin.Demote:
		member.Voter = false
		out[id] = member
	case admin.Remove:
		delete(out, id)
	}
	return out
}

func votes(members map[string]admin.Member) int {
	n := 0
	for _, member := range members {
		if member.Voter {
			n++
		}
	}
	return n
}

// A change goes through exactly when the group can agree before and after, or when force is given and there is
// still something that could agree one day.
func TestPropertyJudgeKeepsTheQuorum(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		members := genConfiguration().Draw(t, "configuration")
		verb := rapid.SampledFrom([]admin.Verb{admin.AddVoter, admin.AddNonvoter, admin.Demote, admin.Remove}).Draw(t, "verb")
		id := rapid.SampledFrom([]string{"a-1", "b-1", "c-1", "d-1", "new-1"}).Draw(t, "server")
		force := rapid.Bool().Draw(t, "force")
		got := admin.Judge(members, verb, id, force)

		_, known := byID(members)[id]
		then := after(members, verb, id)
		var want bool
		switch {
		case !canAgree(byID(members)):
			want = false
		case !known && (verb == admin.Demote || verb == admin.Remove):
			want = false
		case votes(then) == 0:
			want = false
		default:
			want = canAgree(then) || force
		}
		if (got.Refusal == nil) != want {
			t.Fatalf("%s %s (force %v) on %+v: %v, want allowed %v", verb, id, force, members, got.Refusal, want)
		}
		if got.Refusal == nil && !canAgree(then) && got.Warning == "" {
			t.Fatal("forced without a warning")
		}
		checkRefusal(t, members, verb, id, got)
	})
}

// Whatever is refused says why, what to do, and the truth about force.
func checkRefusal(t *rapid.T, members []admin.Member, verb admin.Verb, id string, got admin.Verdict) {
	if got.Refusal == nil {
		return
	}
	if got.Refusal.What == "" || got.Refusal.Why == "" || got.Refusal.Remedy == "" {
		t.Fatalf("refusal leaves something open: %+v", got.Refusal)
	}
	forced := admin.Judge(members, verb, id, true)
	if got.Refusal.ForceOverrides != (forced.Refusal == nil) {
		t.Fatalf("says force overrides: %v; it does: %v", got.Refusal.ForceOverrides, forced.Refusal == nil)
	}
	if got.Refusal.ForceOverrides != strings.Contains(got.Refusal.Remedy, "force") {
		t.Fatalf("remedy %q, force overrides: %v", got.Refusal.Remedy, got.Refusal.ForceOverrides)
	}
}

// However many changes are made without force, and however servers come and go in between, no change ever takes
// the quorum: if it is missing, then because servers failed.
func TestPropertyOnlyFailuresLoseTheQuorum(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		members := genConfiguration().Draw(t, "configuration")
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			agreed := canAgree(byID(members))
			if rapid.Bool().Draw(t, "change") {
				verb := rapid.SampledFrom([]admin.Verb{admin.AddVoter, admin.AddNonvoter, admin.Demote, admin.Remove}).Draw(t, "verb")
				id := rapid.SampledFrom([]string{"a-1", "b-1", "c-1", "x-1", "y-1"}).Draw(t, "server")
				if admin.Judge(members, verb, id, false).Refusal != nil {
					continue
				}
				members = slices.SortedFunc(maps.Values(after(members, verb, id)), func(a, b admin.Member) int { return strings.Compare(a.ID, b.ID) })
				if !agreed || !canAgree(byID(members)) {
					t.Fatalf("%s %s was allowed and the group cannot agree: %+v", verb, id, members)
				}
				continue
			}
			i := rapid.IntRange(0, len(members)-1).Draw(t, "who fails or returns")
			members[i].Healthy = !members[i].Healthy
		}
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	three := func(unhealthy ...string) []admin.Member {
		members := []admin.Member{{ID: "m1-x", Name: "m1", Leader: true}, {ID: "m2-x", Name: "m2"}, {ID: "m3-x", Name: "m3"}}
		for i := range members {
			members[i].Voter = true
			members[i].Healthy = !strings.Contains(strings.Join(unhealthy, " "), members[i].Name)
		}
		return members
	}
	with := func(members []admin.Member, more ...admin.Member) []admin.Member { return append(members, more...) }
	spare := admin.Member{ID: "m4-x", Name: "m4", Healthy: true}
	for name, test := range map[string]struct {
		members []admin.Member
		verb    admin.Verb
		id      string
		code    admin.Code // empty: allowed
		says    string     // in the refusal or the warning
	}{
		"remove-the-dead-one":        {three("m3"), admin.Remove, "m3-x", "", "2 of 2 voters are healthy, 2 are needed: if one more is lost"},
		"remove-a-live-one":          {three("m3"), admin.Remove, "m2-x", admin.WouldLoseQuorum, "2 of 3 voters are healthy, 2 are needed; afterwards 1 of 2 voters are healthy, 2 are needed"},
		"remove-without-quorum":      {three("m2", "m3"), admin.Remove, "m3-x", admin.NoQuorum, "raft recover"},
		"remove-nobody":              {three(), admin.Remove, "m9-x", admin.UnknownServer, "raft peers"},
		"remove-the-last":            {three()[:1], admin.Remove, "m1-x", admin.WouldLoseQuorum, "last voter"},
		"remove-a-non-voter":         {with(three("m3"), spare), admin.Remove, "m4-x", "", ""},
		"add-voter-to-one":           {three()[:1], admin.AddVoter, "m2-x", admin.WouldLoseQuorum, "add it as non-voter"},
		"add-caught-up-voter-to-one": {with(three()[:1], spare), admin.AddVoter, "m4-x", "", "if one more is lost"},
		"add-non-voter-to-one":       {three()[:1], admin.AddNonvoter, "m2-x", "", ""},
		"add-known-voter":            {three("m3"), admin.AddVoter, "m3-x", "", ""},
		"demote-by-adding":           {three("m3"), admin.AddNonvoter, "m2-x", admin.WouldLoseQuorum, "afterwards 1 of 2"},
		"transfer-to-healthy":        {three("m3"), admin.Transfer, "m2-x", "", ""},
		"transfer-to-unhealthy":      {three("m3"), admin.Transfer, "m3-x", admin.NotReady, "force"},
		"transfer-to-non-voter":      {with(three(), spare), admin.Transfer, "m4-x", admin.Invalid, "no vote"},
		"transfer-to-leader":         {three(), admin.Transfer, "m1-x", "", "leads already"},
		"transfer-to-any":            {three("m3"), admin.Transfer, "", "", ""},
		"transfer-alone":             {three()[:1], admin.Transfer, "", admin.NotReady, "no other voter"},
		"transfer-to-nobody":         {three(), admin.Transfer, "m9-x", admin.UnknownServer, "raft peers"},
	} {
		t.Run(name, func(t *testing.T) {
			got := admin.Judge(test.members, test.verb, test.id, false)
			var code admin.Code
			says := got.Warning
			if got.Refusal != nil {
				code, says = got.Refusal.Code, got.Refusal.Error()
			}
			if code != test.code || !strings.Contains(says, test.says) || test.says == "" && says != "" {
				t.Fatalf("%s: %q; want %s with %q", code, says, test.code, test.says)
			}
		})
	}
}

func TestResolveTakesNamesOnlyWhileTheyAreClear(t *testing.T) {
	t.Parallel()
	members := []admin.Member{{ID: "m1-old", Name: "m1"}, {ID: "m1-new", Name: "m1"}, {ID: "m2-x", Name: "m2"}}
	for wanted, want := range map[string]string{"m2": "m2-x", "m2-x": "m2-x", "m1-old": "m1-old", "m1": "", "m3": "", "": ""} {
		got, err := admin.Resolve(members, admin.Remove, wanted)
		if got.ID != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", wanted, got.ID, err)
		}
	}
}
