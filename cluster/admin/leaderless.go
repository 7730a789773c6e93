// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strings"
	"time"
)

// Leaderless is what a member that knows nobody who leads can tell of that by itself.
type Leaderless struct {
	Member   string
	Voters   []string      // of the newest configuration that it knows; none: it belongs to no group yet
	Founders []string      // who are to found a group, itself included; none: it was given no bootstrap token
	Obstacle string        // what kept the group from being founded, or the member from joining, when that was tried last
	Heard    bool          // Silence counts
	Silence  time.Duration // since it heard from a leader
}

// Tell says why nobody leads and what to do about it, in words that need none around them.
func (l Leaderless) Tell() (why, remedy string) {
	switch {
	case len(l.Voters) > 0:
		since := "has heard from no leader since it started"
		if l.Heard {
			since = "has heard from no leader for " + l.Silence.Round(time.Second).String()
		}
		return "nobody leads at present: " + l.Member + " " + since, fmt.Sprintf("%s have to be up and reach each other, and an election takes some seconds: "+
			"`fairlead raft status` shows who is away; traffic goes on as last agreed, changes wait", quorumOf(l.Voters))
	case len(l.Founders) > 0:
		return "the group of " + strings.Join(l.Founders, ", ") + " is not founded yet" + because(l.Obstacle),
			"start all of them, with the same members and the same bootstrapToken, each with an empty data folder"
	}
	return l.Member + " belongs to no group yet" + because(l.Obstacle),
		"it joins by itself once a leader among its members can be reached; to found a group, give all first members the same bootstrapToken"
}

func because(obstacle string) string {
	if obstacle == "" {
		return ""
	}
	return " (" + obstacle + ")"
}

func quorumOf(voters []string) string {
	return fmt.Sprintf("%d of the voters (%s)", len(voters)/2+1, strings.Join(voters, ", "))
}
