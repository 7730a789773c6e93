// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// Server is a member as the newest configuration has it.
type Server struct {
	ID    string
	Name  string
	Voter bool
	Self  bool
}

// told are digests that servers have at one index, in hex, by server id. Who is not there told none.
type told map[string]string

// verdict is what becomes of what servers told.
type verdict struct {
	right    string   // that a majority of all voters has, empty for none
	agree    []string // servers with it, by name
	differ   []string // ids of servers that told another one than the one that was asked for
	silent   []string // ids of servers that told nothing
	away     int      // voters among them
	voters   int
	quorum   int
	asSpoken string // who has what, for people
}

// judge counts what servers told. Who told nothing counts as a voter all the same: two of five are no majority, whoever is away.
func judge(servers []Server, own string, t told) verdict {
	var v verdict
	votes, names := map[string]int{}, map[string][]string{}
	var digests []string // in order of servers
	for _, s := range servers {
		digest, spoke := t[s.ID]
		switch {
		case s.Voter && spoke:
			v.voters++
			votes[digest]++
		case s.Voter:
			v.voters++
			v.away++
		}
		if !spoke {
			v.silent = append(v.silent, s.ID)
			continue
		}
		if len(names[digest]) == 0 {
			digests = append(digests, digest)
		}
		names[digest] = append(names[digest], s.Name)
		if digest != own {
			v.differ = append(v.differ, s.ID)
		}
	}
	v.quorum = v.voters/2 + 1
	for digest, n := range votes {
		if n >= v.quorum {
			v.right, v.agree = digest, names[digest]
		}
	}
	var says []string
	for _, digest := range digests {
		says = append(says, fmt.Sprintf("%s: %s", strings.Join(names[digest], ", "), digest))
	}
	v.asSpoken = strings.Join(says, "; ")
	return v
}

// found is what a member in the minority is told at an index.
func (v verdict) found(at fsm.Index, own string) string {
	return fmt.Sprintf("at index %d its digest is %s, and that of %s, who are a majority of %d voters, is %s", at, own, strings.Join(v.agree, ", "), v.voters, v.right)
}
