// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strings"
)

// Verb is a change of the configuration, or of who leads.
type Verb string

// The verbs.
const (
	AddVoter    Verb = "add"
	AddNonvoter Verb = "add non-voter"
	Demote      Verb = "demote"
	Remove      Verb = "remove"
	Transfer    Verb = "transfer leadership to"
)

// Member is one server of the configuration, as the leader sees it.
type Member struct {
	ID         string // Raft server id: the name and an instance
	Name       string
	Address    string // of its Raft transport
	APIAddress string // empty if not known
	Voter      bool
	Leader     bool
	Healthy    bool   // it answered the leader lately, and nothing of Unhealthy
	Unhealthy  string // why it is not, as far as its leader tells
}

// Verdict is what Judge says about a change. Without Refusal it may be made.
type Verdict struct {
	Refusal *Refusal
	Warning string // what an operator should know before he turns away
}

// Judge decides whether a change leaves the group able to agree. It is pure: servers is the configuration with
// the leader's view of who is healthy, id names the server that the change is about (empty for Transfer: any).
//
// The rules. A quorum is more than half of the voters.
//
//   - Without a quorum of healthy voters now, nothing can be agreed on: NoQuorum, and force cannot help.
//   - A change after which the healthy voters were no quorum of the voters is WouldLoseQuorum; force does it. A
//     server that is not in the configuration yet counts as unhealthy: it has nothing of the log. Add it as a
//     non-voter, and it is promoted once it has caught up.
//   - The last voter cannot be removed or demoted, with force or without.
//   - Leadership goes to voters only; to an unhealthy one only with force.
//   - What names no server of the configuration is UnknownServer.
//
// Adding a server that is a voter as non-voter demotes it, and is judged so.
func Judge(servers []Member, verb Verb, id string, force bool) Verdict {
	target, known := find(servers, id)
	if verb == AddNonvoter && known && target.Voter {
		verb = Demote
	}
	j := judgement{what: string(verb) + " " + nameOf(target, id), before: count(servers), force: force}
	if !j.before.quorate() {
		return j.refuse(NoQuorum, false,
			fmt.Sprintf("%s, so that nothing can be agreed on", j.before),
			"start the others again; if they are lost for ever, `fairlead raft recover`")
	}
	if !known && verb != AddVoter && verb != AddNonvoter && (verb != Transfer || id != "") {
		return j.refuse(UnknownServer, false, unknownServer, peersLists)
	}
	switch verb {
	case AddVoter:
		return j.addVoter(target, known)
	case Demote, Remove:
		return j.takeVote(target)
	case Transfer:
		return j.transfer(servers, target, known)
	default: // AddNonvoter: no vote changes
		return Verdict{}
	}
}

const (
	unknownServer = "no server of the configuration bears that id or name"
	peersLists    = "`fairlead raft peers` lists them"
)

// tally counts the voters.
type tally struct{ voters, healthy int }

func count(servers []Member) tally {
	var t tally
	for _, server := range servers {
		if server.Voter {
			t.voters++
			if server.Healthy {
				t.healthy++
			}
		}
	}
	return t
}

func (t tally) quorum() int   { return t.voters/2 + 1 }
func (t tally) quorate() bool { return t.healthy >= t.quorum() }

func (t tally) String() string {
	return fmt.Sprintf("%d of %d voters are healthy, %d are needed", t.healthy, t.voters, t.quorum())
}

// with gives the tally after a server got or lost its vote.
func (t tally) with(server Member, votes int) tally {
	t.voters += votes
	if server.Healthy {
		t.healthy += votes
	}
	return t
}

type judgement struct {
	what   string
	before tally
	force  bool
}

func (j judgement) refuse(code Code, forceHelps bool, why, remedy string) Verdict {
	if forceHelps && j.force {
		return Verdict{Warning: why + "; done because it was forced"}
	}
	if forceHelps {
		remedy += ", or force it"
	}
	return Verdict{Refusal: &Refusal{Code: code, What: j.what, Why: why, Remedy: remedy, ForceOverrides: forceHelps}}
}

func (j judgement) addVoter(target Member, known bool) Verdict {
	if known && target.Voter {
		return Verdict{} // a new address at most
	}
	remedy := "wait until it has caught up"
	if !known {
		target = Member{}
		remedy = "add it as non-voter: it is promoted once it has caught up"
	}
	return j.outcome(j.before.with(target, 1), remedy)
}

func (j judgement) takeVote(target Member) Verdict {
	if !target.Voter {
		return Verdict{}
	}
	if j.before.voters == 1 {
		return j.refuse(WouldLoseQuorum, false, "it is the last voter, without it there is no group", "add another voter first")
	}
	return j.outcome(j.before.with(target, -1), "bring the unhealthy voters back, or remove those instead, first")
}

func (j judgement) outcome(after tally, remedy string) Verdict {
	if !after.quorate() {
		return j.refuse(WouldLoseQuorum, true, fmt.Sprintf("%s; afterwards %s", j.before, after), remedy)
	}
	if spare := after.healthy - after.quorum(); spare == 0 && after.voters > 1 {
		return Verdict{Warning: fmt.Sprintf("%s: if one more is lost, changes wait", after)}
	}
	return Verdict{}
}

func (j judgement) transfer(servers []Member, target Member, known bool) Verdict {
	if !known {
		for _, server := range servers {
			if server.Voter && server.Healthy && !server.Leader {
				return Verdict{}
			}
		}
		return j.refuse(NotReady, false, "no other voter is healthy", "start another one")
	}
	switch {
	case !target.Voter:
		return j.refuse(Invalid, false, "it has no vote", "it gets one once it has caught up; name a voter")
	case target.Leader:
		return Verdict{Warning: target.Name + " leads already"}
	case !target.Healthy:
		return j.refuse(NotReady, true, "it is not healthy: changes would wait until the attempt is given up", "name a healthy voter")
	default:
		return Verdict{}
	}
}

// Resolve finds the server that a person means by its id, or by its name if only one bears it.
//
// Errors: a Refusal with UnknownServer or Invalid.
func Resolve(servers []Member, verb Verb, wanted string) (Member, error) {
	if server, ok := find(servers, wanted); ok {
		return server, nil
	}
	var named []string
	var last Member
	for _, server := range servers {
		if server.Name == wanted {
			named, last = append(named, server.ID), server
		}
	}
	what := string(verb) + " " + wanted
	switch {
	case wanted == "":
		return Member{}, &Refusal{Code: Invalid, What: string(verb), Why: "no server named", Remedy: peersLists}
	case len(named) == 1:
		return last, nil
	case len(named) > 1:
		return Member{}, &Refusal{
			Code: Invalid, What: what, Why: "several servers bear that name: " + strings.Join(named, ", "),
			Remedy: "name one of these ids",
		}
	default:
		return Member{}, &Refusal{Code: UnknownServer, What: what, Why: unknownServer, Remedy: peersLists}
	}
}

func find(servers []Member, id string) (Member, bool) {
	for _, server := range servers {
		if server.ID == id {
			return server, true
		}
	}
	return Member{}, false
}

func nameOf(server Member, id string) string {
	switch {
	case server.Name != "":
		return server.Name
	case id == "":
		return "any"
	default:
		return id
	}
}
