// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"strconv"
	"strings"
)

// Membership is the group that somebody belongs to and the epoch of it that he knows. The zero value is that
// of an empty server, which belongs to none yet.
type Membership struct {
	Group string // letters, digits, - . _, starting with a letter or digit, at most 64 bytes
	Epoch uint64 // 0 while unknown
	// OrNewer is set by agents: they follow their group into a newer epoch, where a member has to be
	// refused. Members never set it.
	OrNewer bool
}

// Self tells what this process belongs to right now; it is asked anew for each handshake. It must be quick.
type Self func() (group string, epoch uint64)

// String gives group/epoch as in logs; "none" for an empty server.
func (m Membership) String() string {
	if m.Group == "" {
		return "none"
	}
	return m.Group + "/" + strconv.FormatUint(m.Epoch, 10)
}

// Verdict is what two memberships mean to each other.
type Verdict uint8

// The verdicts.
const (
	Welcome      Verdict = iota // they may talk
	OtherGroup                  // they belong to different groups
	PeerOutdated                // the peer missed a NewEpoch (recover, restore): its record is not the group's any more
	WeOutdated                  // the peer knows a newer epoch: our record is not the group's any more
)

// Reason names a verdict in logs and metrics.
func (v Verdict) Reason() string {
	return [...]string{"welcome", "other-group", "peer-outdated", "we-are-outdated"}[v]
}

// Remedy says what an operator does about a refusal.
func (v Verdict) Remedy() string {
	return [...]string{
		"",
		"one of the two is configured with addresses of the other's group: correct them, or wipe the data folder of the " +
			"one that shall change groups",
		"the peer missed a recover or restore: stop it, wipe its data folder and let it join again as a new server",
		"this member missed a recover or restore: stop it, wipe its data folder and let it join again as a new server",
	}[v]
}

// Meet decides, from our side, whether a peer may talk to us. The rules, first match wins:
//
//  1. Either has no group: welcome. An empty server may talk to any group, since it wants to join one, and any
//     group may talk to it; people's clients name no group at all.
//  2. The groups differ: OtherGroup.
//  3. Either knows no epoch yet (0): welcome. It has joined, but not received the record.
//  4. The epochs are equal: welcome.
//  5. The peer's is newer: WeOutdated.
//  6. The peer's is older: welcome if it said OrNewer, else PeerOutdated.
//
// Who meets as older on one side meets as newer on the other: Meet(a, b) is PeerOutdated exactly when
// Meet(b, a) is WeOutdated, as long as neither said OrNewer.
func Meet(ours, theirs Membership) Verdict {
	switch {
	case ours.Group == "" || theirs.Group == "":
		return Welcome
	case ours.Group != theirs.Group:
		return OtherGroup
	case ours.Epoch == 0 || theirs.Epoch == 0 || ours.Epoch == theirs.Epoch:
		return Welcome
	case theirs.Epoch > ours.Epoch:
		return WeOutdated
	case theirs.OrNewer:
		return Welcome
	default:
		return PeerOutdated
	}
}

// Port is one of the two listeners of a member.
type Port string

// The ports.
const (
	Raft Port = "raft" // members only; the membership is the protocol itself: fairlead-raft/<group>/<epoch>
	API  Port = "api"  // all roles; fairlead/<group>/<epoch> is offered beside h2 and http/1.1
)

const (
	noGroup        = "-"
	maxGroupLength = 64
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
	if m.OrNewer {
		suffix = "+"
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
	digits, orNewer := strings.CutSuffix(epoch, "+")
	number, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return Membership{}, fmt.Errorf("membership %q: not group/epoch", text)
	}
	if group == noGroup {
		if number != 0 {
			return Membership{}, fmt.Errorf("membership %q: an epoch without group", text)
		}
		return Membership{OrNewer: orNewer}, nil
	}
	return Membership{Group: group, Epoch: number, OrNewer: orNewer}, CheckGroup(group)
}

// CheckGroup refuses what cannot be a group id.
func CheckGroup(group string) error {
	letter := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	valid := group != "" && len(group) <= maxGroupLength && letter(group[0])
	for i := 0; valid && i < len(group); i++ {
		valid = letter(group[i]) || group[i] == '-' || group[i] == '.' || group[i] == '_'
	}
	if !valid {
		return fmt.Errorf("group id %q: use at most %d letters, digits, - . _, starting with a letter or digit", group, maxGroupLength)
	}
	return nil
}
