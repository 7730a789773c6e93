// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"strconv"
	"strings"
)

// Membership is what somebody belongs to. The zero value is that of an empty server, which belongs to nothing yet.
//
// Of a member it is the lineage of its log, which a restore does not change: see fsm.Lineage. Of an agent it is the group, and the epoch of
// the record, that it was told of.
type Membership struct {
	Group string // letters, digits, - . _, starting with a letter or digit, at most 64 bytes
	Epoch uint64 // 0 while unknown
	Nonce string // of a member that was recovered: at most 16 letters and digits
	// Record is, of ourselves, what agents are held against. It is named to nobody.
	Record Record
	// OrNewer is set by agents: they follow their group into a newer epoch, where a member has to be
	// refused. Members never set it.
	OrNewer bool
}

// Record is the group of a record and its epoch, 0 while unknown.
type Record struct {
	Group string
	Epoch uint64
}

// Self tells what this process belongs to right now; it is asked anew for each handshake. It must be quick.
type Self func() Membership

// Naming is a Self of a group and an epoch.
func Naming(at func() (group string, epoch uint64)) Self {
	return func() Membership {
		group, epoch := at()
		return Membership{Group: group, Epoch: epoch}
	}
}

// String gives group/epoch or group/epoch.nonce as in logs; "none" for an empty server.
func (m Membership) String() string {
	if m.Group == "" {
		return "none"
	}
	text := m.Group + "/" + strconv.FormatUint(m.Epoch, 10)
	if m.Nonce != "" {
		text += "." + m.Nonce
	}
	return text
}

// Verdict is what two memberships mean to each other.
type Verdict uint8

// The verdicts.
const (
	Welcome      Verdict = iota // they may talk
	OtherGroup                  // they belong to different groups
	PeerOutdated                // the group was recovered without the peer: its log is not the group's any more
	WeOutdated                  // the group was recovered without us: our log is not the group's any more
	Apart                       // both were recovered, each without the other
	Behind                      // an agent was told of an epoch that our record has not reached
)

// Reason names a verdict in logs and metrics.
func (v Verdict) Reason() string {
	return [...]string{"welcome", "other-group", "peer-outdated", "we-are-outdated", "recovered-apart", "behind"}[v]
}

// Remedy says what an operator does about a refusal.
func (v Verdict) Remedy() string {
	return [...]string{
		"",
		"one of the two is configured with addresses of the other's group: correct them, or wipe the data folder of the " +
			"one that shall change groups",
		"`fairlead raft recover` was run on this member's side without the peer: if that was meant, stop the peer, wipe its data folder and let it " +
			"join again as a new server; if a majority of the members is with the peer, it was not: stop this member and wipe this one instead",
		"`fairlead raft recover` was run on the peer's side without this member: if that was meant, stop this member, wipe its data folder and let it " +
			"join again as a new server; if a majority of the members is with this one, it was not: stop the peer and wipe that one instead",
		"`fairlead raft recover` was run on both members: keep the one whose record shall count (`fairlead raft status` on each), stop the other " +
			"one, wipe its data folder and let it join again as a new server",
		"none, if it ends soon: this member has yet to read that a backup was restored; `fairlead raft status` tells whether it is behind",
	}[v]
}

// Meet decides, from our side, whether a peer may talk to us. The rules, first match wins:
//
//  1. Either has no group: welcome. An empty server may talk to any group, since it wants to join one, and any
//     group may talk to it; people's clients name no group at all.
//  2. The groups differ: OtherGroup.
//  3. Either knows no epoch yet (0): welcome. It has joined, but not received the record.
//  4. The epochs are equal: welcome if the nonces are, else Apart.
//  5. The peer's is newer: WeOutdated.
//  6. The peer's is older: PeerOutdated.
//
// Who meets as older on one side meets as newer on the other: Meet(a, b) is PeerOutdated exactly when
// Meet(b, a) is WeOutdated. Agents, who say OrNewer, are held against our record instead (meetAgent).
func Meet(ours, theirs Membership) Verdict {
	switch {
	case theirs.OrNewer:
		return meetAgent(ours, theirs)
	case ours.Group == "" || theirs.Group == "":
		return Welcome
	case ours.Group != theirs.Group:
		return OtherGroup
	case ours.Epoch == 0 || theirs.Epoch == 0:
		return Welcome
	case theirs.Epoch > ours.Epoch:
		return WeOutdated
	case theirs.Epoch < ours.Epoch:
		return PeerOutdated
	case ours.Nonce != theirs.Nonce:
		return Apart
	default:
		return Welcome
	}
}

// meetAgent has an agent follow its group into a newer epoch of the record, and keeps it from a member that has not reached the agent's.
func meetAgent(ours, theirs Membership) Verdict {
	record := ours.Record
	if record == (Record{}) {
		record = Record{ours.Group, ours.Epoch}
	}
	switch {
	case record.Group == "" || theirs.Group == "":
		return Welcome
	case record.Group != theirs.Group && ours.Group != theirs.Group:
		return OtherGroup
	case record.Epoch != 0 && theirs.Epoch > record.Epoch:
		return Behind
	default:
		return Welcome
	}
}

// Port is one of the two listeners of a member.
type Port string

// The ports.
const (
	Raft Port = "raft" // members only; the membership is the protocol itself: fairlead-raft/<group>/<epoch>[.<nonce>]
	API  Port = "api"  // all roles; fairlead/<group>/<epoch>[.<nonce>] is offered beside h2 and http/1.1
)

const (
	noGroup        = "-"
	maxGroupLength = 64
	maxNonceLength = 16
)

func (p Port) prefix() string {
	if p == Raft {
		return "fairlead-raft/"
	}
	return "fairlead/"
}

// protocol writes a membership as a protocol name for ALPN (RFC 7301, at most 255 bytes). It crosses the wire
// in the clear: group id and epoch are no secrets.
func (p Port) protocol(m Membership) string {
	group, suffix := m.Group, ""
	if group == "" {
		group = noGroup
	}
	if m.Nonce != "" {
		suffix = "." + m.Nonce
	}
	if m.OrNewer {
		suffix += "+"
	}
	return p.prefix() + group + "/" + strconv.FormatUint(m.Epoch, 10) + suffix
}

// offered finds the membership among the protocols that a client offers; named is false if there is none.
func (p Port) offered(protocols []string) (m Membership, named bool, err error) {
	for _, protocol := range protocols {
		rest, ok := strings.CutPrefix(protocol, p.prefix())
		if !ok {
			continue
		}
		if named {
			return Membership{}, false, fmt.Errorf("two memberships offered: %q", protocols)
		}
		named = true
		if m, err = parseMembership(rest); err != nil {
			return Membership{}, false, err
		}
	}
	return m, named, nil
}

func parseMembership(text string) (Membership, error) {
	group, epoch, ok := strings.Cut(text, "/")
	epoch, orNewer := strings.CutSuffix(epoch, "+")
	digits, nonce, recovered := strings.Cut(epoch, ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return Membership{}, fmt.Errorf("membership %q: not group/epoch", text)
	}
	if recovered && !isNonce(nonce) {
		return Membership{}, fmt.Errorf("membership %q: what tells one recover from another is up to %d letters and digits", text, maxNonceLength)
	}
	if group == noGroup {
		if number != 0 || recovered {
			return Membership{}, fmt.Errorf("membership %q: an epoch without group", text)
		}
		return Membership{OrNewer: orNewer}, nil
	}
	return Membership{Group: group, Epoch: number, Nonce: nonce, OrNewer: orNewer}, CheckGroup(group)
}

func isNonce(text string) bool {
	valid := text != "" && len(text) <= maxNonceLength
	for i := 0; valid && i < len(text); i++ {
		valid = alphanumeric(text[i])
	}
	return valid
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// CheckGroup refuses what cannot be a group id.
func CheckGroup(group string) error {
	valid := group != "" && len(group) <= maxGroupLength && alphanumeric(group[0])
	for i := 0; valid && i < len(group); i++ {
		valid = alphanumeric(group[i]) || group[i] == '-' || group[i] == '.' || group[i] == '_'
	}
	if !valid {
		return fmt.Errorf("group id %q: use at most %d letters, digits, - . _, starting with a letter or digit", group, maxGroupLength)
	}
	return nil
}
