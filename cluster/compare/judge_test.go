// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// group gives servers by what they told: a letter is a digest, a dot nothing; those behind a bar have no vote. The first one asks.
func group(text string) (servers []Server, own string, t told) {
	t = told{}
	voter := true
	for _, c := range text {
		if c == '|' {
			voter = false
			continue
		}
		s := Server{ID: fmt.Sprintf("m%d-x", len(servers)+1), Name: fmt.Sprintf("m%d", len(servers)+1), Voter: voter, Self: len(servers) == 0}
		if c != '.' {
			t[s.ID] = string(c)
		}
		servers = append(servers, s)
	}
	return servers, t["m1-x"], t
}

func TestAMajorityOfAllVotersJudges(t *testing.T) {
	for text, c := range map[string]struct{ right, differ string }{
		"a":       {"a", ""},
		"aaa":     {"a", ""},
		"aab":     {"a", "m3-x"},
		"abb":     {"b", "m2-x m3-x"},
		"abc":     {"", "m2-x m3-x"},
		"ab":      {"", "m2-x"},
		"ab.":     {"", "m2-x"},
		"aa.":     {"a", ""},
		"a..":     {"", ""},
		"aabb.":   {"", "m3-x m4-x"},
		"abbb.":   {"b", "m2-x m3-x m4-x"},
		"aab|bbb": {"a", "m3-x m4-x m5-x m6-x"},
		"a.|aaa":  {"", ""},
	} {
		servers, own, told := group(text)
		if v := judge(servers, own, told); v.right != c.right || strings.Join(v.differ, " ") != c.differ {
			t.Errorf("%s: right %q, differ %v", text, v.right, v.differ)
		}
	}
}

// Whoever asks, and whoever is away: no two members find different records right, and those who are found wrong are fewer than half of the voters.
func TestPropertyNoMajorityIsJudged(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		servers := make([]Server, rapid.IntRange(1, 7).Draw(t, "servers"))
		has := map[string]string{}
		for i := range servers {
			servers[i] = Server{ID: fmt.Sprint(i), Name: fmt.Sprint(i), Voter: i == 0 || rapid.Bool().Draw(t, "voter")}
			has[servers[i].ID] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "digest")
		}
		voters, wrong, right := 0, 0, map[string]bool{}
		for _, s := range servers {
			if s.Voter {
				voters++
			}
			heard := told{s.ID: has[s.ID]}
			for _, o := range servers {
				if rapid.Bool().Draw(t, "answers") {
					heard[o.ID] = has[o.ID]
				}
			}
			v := judge(servers, has[s.ID], heard)
			if v.right == "" {
				continue
			}
			right[v.right] = true
			if v.right != has[s.ID] && s.Voter {
				wrong++
			}
			if slices.Contains(v.differ, s.ID) {
				t.Fatalf("%s differs from itself", s.ID)
			}
		}
		if len(right) > 1 || 2*wrong >= voters {
			t.Fatalf("right: %v; %d of %d voters were found wrong", right, wrong, voters)
		}
	})
}
