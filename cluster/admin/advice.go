// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

var errNoAddress = errors.New("the address of its API is not known")

// summarize counts voters and says in one line what is wrong and what to do about it, worst first.
func summarize(status *fairleadv1.StatusResponse) {
	var t tally
	var down, whys []string
	for _, member := range status.GetMembers() {
		if member.GetSuffrage() == fairleadv1.Suffrage_SUFFRAGE_VOTER {
			t = t.with(Member{Healthy: member.GetHealthy()}, 1)
		}
		if !member.GetHealthy() {
			down = append(down, member.GetName())
			if why := member.GetUnhealthy(); why != "" {
				whys = append(whys, member.GetName()+" "+why)
			}
		}
	}
	status.Voters, status.HealthyVoters = uint32(t.voters), uint32(t.healthy)
	if t.voters > 0 {
		status.Quorum = uint32(t.quorum())
	}
	if forgotten(status) {
		status.Advice = disclaim(status)
		return
	}
	status.Advice = strings.Join(slices.DeleteFunc(append([]string{disclaim(status), advise(status, t, down)}, whys...), func(part string) bool { return part == "" }), "; ")
}

// moved are the voters that are reached elsewhere by now than where the configuration has the others look for them, while nobody leads who would
// have it mended.
func moved(status *fairleadv1.StatusResponse) (out []*fairleadv1.Member) {
	for _, member := range status.GetMembers() {
		if at := member.GetReachedAt(); at != "" && at != member.GetAddress() && member.GetSuffrage() == fairleadv1.Suffrage_SUFFRAGE_VOTER {
			out = append(out, member)
		}
	}
	return out
}

// renumbered says that nobody can be elected since voters look for each other at former addresses.
func renumbered(moved []*fairleadv1.Member) string {
	var each []string
	for _, member := range moved {
		each = append(each, fmt.Sprintf("%s is at %s, where the group's configuration has %s", member.GetName(), member.GetReachedAt(), member.GetAddress()))
	}
	return "nobody leads, and Raft addresses have changed: " + strings.Join(each, "; ") + "; of a majority they may not change at once: " +
		"start as many with their former addresses as a quorum needs, then change one after the other, or, where the former addresses are gone for good, " +
		"`fairlead raft recover` on the member that has applied the most (docs/failures.md, \"Other addresses for all members\")"
}

func advise(status *fairleadv1.StatusResponse, t tally, down []string) string {
	missing := strings.Join(down, ", ")
	switch {
	case t.voters == 0:
		return "" // the member says why (Leaderless)
	case status.GetLeader() == "" && len(moved(status)) > 0:
		return renumbered(moved(status))
	case !t.quorate() && status.GetLeader() == "":
		return fmt.Sprintf("no quorum: %s; traffic goes on as last agreed, changes wait; start %s again, "+
			"or if they are lost for ever, `fairlead raft recover`", t, missing)
	case status.GetLeader() == "":
		return "nobody leads: if this stays so for more than some seconds, look at the members' logs and at the network between their Raft ports"
	}
	if first, other := disagreement(status); other != nil {
		return fmt.Sprintf("%s and %s have different records at index %d: one that differs from a majority ends by itself, and its log says how it joins again; "+
			"without a majority that agrees nobody is judged: keep the data folders of all, make a backup, and report it", first.GetName(), other.GetName(), other.GetDigestAt())
	}
	switch {
	case len(down) > 0 && t.healthy == t.quorum() && t.voters > 1:
		return fmt.Sprintf("%s: if one more voter is lost, changes wait; start %s again or replace it", t, missing)
	case len(down) > 0:
		return fmt.Sprintf("not healthy: %s; start it again or replace it", missing)
	case t.voters == 1:
		return "one voter bears no failure: three are the norm"
	case t.voters == 2:
		return "with two voters changes wait while either is down: three are the norm"
	default:
		return ""
	}
}
