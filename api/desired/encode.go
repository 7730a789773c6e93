// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// PieceBytes is about how much of a state goes into one message: a slow reader holds that much memory of a
// member, not a whole state.
const PieceBytes = 256 << 10

// Pieces collects items into encoded Changes of about PieceBytes each.
type Pieces struct {
	done [][]byte
	next fairleadv1.Changes
	size int
}

// Put adds an item. The value is kept, not copied.
func (p *Pieces) Put(key string, value []byte) error {
	p.next.Put = append(p.next.Put, &fairleadv1.Item{Key: []byte(key), Value: value})
	return p.grew(len(key) + len(value))
}

// Remove says that an item is no longer there.
func (p *Pieces) Remove(key string) error {
	p.next.Remove = append(p.next.Remove, []byte(key))
	return p.grew(len(key))
}

func (p *Pieces) grew(by int) error {
	if p.size += by + 8; p.size < PieceBytes {
		return nil
	}
	return p.close()
}

func (p *Pieces) close() error {
	data, err := proto.Marshal(&p.next)
	if err != nil {
		return fmt.Errorf("encode changes: %w", err)
	}
	p.done, p.next, p.size = append(p.done, data), fairleadv1.Changes{}, 0
	return nil
}

// Bytes gives the encoded Changes, none if there was nothing to add.
func (p *Pieces) Bytes() ([][]byte, error) {
	if p.size > 0 {
		if err := p.close(); err != nil {
			return nil, err
		}
	}
	return p.done, nil
}

// Marshal encodes a state for keeping: its SHA-256, then a SyncResponse that holds all of it.
func (s State) Marshal() ([]byte, error) {
	m := &fairleadv1.SyncResponse{
		Revision: RevisionMessage(s.Revision), Full: true, Digest: s.Digest[:], Node: s.node(),
	}
	var pieces Pieces
	for _, i := range s.items {
		if err := pieces.Put(i.key, i.encoded()); err != nil {
			return nil, err
		}
	}
	var err error
	if m.Changes, err = pieces.Bytes(); err != nil {
		return nil, err
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	sum := sha256.Sum256(body)
	return append(sum[:], body...), nil
}

// Unmarshal is the inverse of Marshal. It refuses what was damaged.
func Unmarshal(data []byte) (State, error) {
	if len(data) < sha256.Size {
		return State{}, fmt.Errorf("decode state: %d bytes are none", len(data))
	}
	body := data[sha256.Size:]
	if sum := sha256.Sum256(body); string(sum[:]) != string(data[:sha256.Size]) {
		return State{}, errors.New("decode state: it is damaged")
	}
	var m fairleadv1.SyncResponse
	if err := proto.Unmarshal(body, &m); err != nil {
		return State{}, fmt.Errorf("decode state: %w", err)
	}
	var steps Steps
	if _, err := steps.Add(&m); err != nil {
		return State{}, err
	}
	return steps.State, nil
}

func (s State) node() *fairleadv1.NodeState {
	m := NodeMessage(s.Group, s.Config, s.Members)
	m.Zone, m.Leaving, m.Tunnels = s.Zone, s.Leaving, TunnelMessage(s.Tunnels)
	return m
}

// NodeMessage encodes what is a node's own, but for its zone and whether it leaves; config may be nil.
func NodeMessage(group string, config *Config, members []Member) *fairleadv1.NodeState {
	m := &fairleadv1.NodeState{Group: group}
	for _, member := range members {
		m.Members = append(m.Members, &fairleadv1.GroupMember{Name: member.Name, Address: member.Address})
	}
	if config != nil {
		m.Config = &fairleadv1.NodeConfig{
			InTable: config.InTable, OutTable: config.OutTable, ReplaceDefault: config.ReplaceDefault,
			RulePriorityIn: config.RulePriorityIn, RulePriorityOut: config.RulePriorityOut, FwMark: config.FwMark,
		}
		for _, gateway := range config.Switches {
			m.Config.Switches = append(m.Config.Switches, gateway.String())
		}
	}
	return m
}
