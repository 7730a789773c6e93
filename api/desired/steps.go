// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

var (
	// ErrRanBack says that a member sent a revision older than one that the agent has (S13).
	ErrRanBack = errors.New("the member's revision is older than ours")
	// ErrOtherGroup says that a state is another group's.
	ErrOtherGroup = errors.New("the member belongs to another group")
	// ErrDigest says that a step did not lead to the digest that it named: everything has to be sent anew.
	ErrDigest = errors.New("what came out is not what the member has")
)

// maxPending bounds the messages of one step that are kept until it is whole; a member sends pieces of 256 KiB.
const maxPending = 4096

// Steps puts the messages of one stream together. The zero value begins with the zero State; it is for one
// goroutine.
type Steps struct {
	State   State // after the newest whole step
	pending []*fairleadv1.SyncResponse
}

// Add takes the next message of the stream. It returns whether a step is whole and State is of it; else more is
// to come. On an error State is as it was, and nothing more of this stream can be merged.
//
// Errors: ErrRanBack, ErrOtherGroup, ErrDigest, or what does not decode.
func (s *Steps) Add(m *fairleadv1.SyncResponse) (whole bool, err error) {
	if len(s.pending) >= maxPending {
		return false, fmt.Errorf("merge step to %s: more than %d messages", RevisionOf(m.GetRevision()), maxPending)
	}
	s.pending = append(s.pending, m)
	if m.GetMore() {
		return false, nil
	}
	parts := s.pending
	s.pending = nil
	next, err := s.State.merge(parts)
	if err != nil {
		return false, fmt.Errorf("merge step to %s: %w", RevisionOf(m.GetRevision()), err)
	}
	s.State = next
	return true, nil
}

// merge carries a whole step out on a copy.
func (s State) merge(parts []*fairleadv1.SyncResponse) (State, error) {
	next, last := s, parts[len(parts)-1]
	next.Revision = RevisionOf(last.GetRevision())
	if next.Revision.IsZero() {
		return s, errors.New("it names no revision")
	}
	if next.Revision.Before(s.Revision) {
		return s, fmt.Errorf("%w: %s", ErrRanBack, s.Revision)
	}
	if parts[0].GetFull() {
		next.items, next.Digest = nil, Digest{}
	}
	for _, m := range parts {
		if err := next.change(m.GetChanges()); err != nil {
			return s, err
		}
		if own := m.GetNode(); own != nil {
			if err := next.own(own); err != nil {
				return s, err
			}
		}
	}
	if want := last.GetDigest(); string(want) != string(next.Digest[:]) {
		return s, fmt.Errorf("%w: digest %x, want %x", ErrDigest, next.Digest, want)
	}
	return next, nil
}

// own takes over what is the node's own.
func (s *State) own(m *fairleadv1.NodeState) error {
	if s.Group != "" && m.GetGroup() != s.Group {
		return fmt.Errorf("%w: %s, ours is %s; name members of one group, or clear the agent's folder to change groups",
			ErrOtherGroup, m.GetGroup(), s.Group)
	}
	s.Group, s.Config, s.Members, s.Zone, s.Leaving = m.GetGroup(), nil, nil, m.GetZone(), m.GetLeaving()
	for _, member := range m.GetMembers() {
		s.Members = append(s.Members, Member{Name: member.GetName(), Address: member.GetAddress()})
	}
	tunnels, err := tunnelsOf(m.GetTunnels())
	if err != nil {
		return err
	}
	s.Tunnels = tunnels
	c := m.GetConfig()
	if c == nil {
		return nil
	}
	s.Config = &Config{
		InTable: c.GetInTable(), OutTable: c.GetOutTable(), ReplaceDefault: c.GetReplaceDefault(),
		RulePriorityIn: c.GetRulePriorityIn(), RulePriorityOut: c.GetRulePriorityOut(), FwMark: c.GetFwMark(),
	}
	for _, text := range c.GetSwitches() {
		gateway, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("node configuration: switch: %w", err)
		}
		s.Config.Switches = append(s.Config.Switches, gateway)
	}
	return nil
}

// edit puts an item in, or takes the one with its key out.
type edit struct {
	item
	remove bool
}

// change carries out encoded changes, the later ones over the earlier, in one pass over the items.
func (s *State) change(encoded [][]byte) error {
	var edits []edit
	for _, data := range encoded {
		var c fairleadv1.Changes
		if err := proto.Unmarshal(data, &c); err != nil {
			return fmt.Errorf("decode changes: %w", err)
		}
		for _, put := range c.GetPut() {
			i, err := newItem(string(put.GetKey()), put.GetValue())
			if err != nil {
				return err
			}
			edits = append(edits, edit{item: i})
		}
		for _, key := range c.GetRemove() {
			edits = append(edits, edit{item: item{key: string(key)}, remove: true})
		}
	}
	if len(edits) > 0 {
		s.splice(edits)
	}
	return nil
}

// splice makes edits, the later ones over the earlier, on a copy of the items.
func (s *State) splice(edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.compare(b.item) })
	out := make([]item, 0, len(s.items)+len(edits))
	old := s.items
	for n, e := range edits {
		if n+1 < len(edits) && edits[n+1].key == e.key {
			continue
		}
		for len(old) > 0 && old[0].key < e.key {
			out, old = append(out, old[0]), old[1:]
		}
		if len(old) > 0 && old[0].key == e.key {
			s.Digest = s.Digest.Minus(e.key, old[0].encoded())
			old = old[1:]
		}
		if !e.remove {
			s.Digest = s.Digest.Plus(e.key, e.encoded())
			out = append(out, e.item)
		}
	}
	s.items = append(out, old...)
}
