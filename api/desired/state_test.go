// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// model is what a member has: a plain map, hashed and encoded anew each time.
type model map[string][]byte

func (m model) digest() []byte {
	var d desired.Digest
	for k, v := range m {
		d = d.Plus(k, v)
	}
	return d[:]
}

func (m model) full(t *rapid.T, revision fsm.Revision) *fairleadv1.SyncResponse {
	var p desired.Pieces
	for k, v := range m {
		must(t, p.Put(k, v))
	}
	changes, err := p.Bytes()
	must(t, err)
	return &fairleadv1.SyncResponse{
		Revision: desired.RevisionMessage(revision), Full: true, Changes: changes, Digest: m.digest(),
		Node: desired.NodeMessage("g", nil, nil),
	}
}

func (m model) addresses() []netip.Prefix {
	var out []netip.Prefix
	for k := range m {
		if k[0] == 'a' {
			a, _ := netip.AddrFromSlice([]byte(k[1:]))
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func drawKey(t *rapid.T) string {
	if rapid.IntRange(0, 4).Draw(t, "unknown kind") == 0 {
		return fmt.Sprintf("z%d", rapid.IntRange(0, 2).Draw(t, "unknown"))
	}
	if rapid.Bool().Draw(t, "v6") {
		return desired.AddressKey(netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", rapid.IntRange(1, 4).Draw(t, "host6"))))
	}
	return desired.AddressKey(netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 6).Draw(t, "host"))}))
}

func drawValue(t *rapid.T) []byte {
	ports := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) desired.Port {
		return desired.Port{Protocol: 6, Number: rapid.Uint16Range(80, 82).Draw(t, "port")}
	}), 0, 2).Draw(t, "ports")
	value, err := desired.AddressValue(ports)
	must(t, err)
	return value
}

// Whatever changes come in whatever number of messages, carrying them out gives what sending everything gives.
func TestPropertyDeltasGiveTheFullState(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		truth := model{}
		var followed desired.Steps
		whole, err := followed.Add(truth.full(t, fsm.Revision{Epoch: 1, Index: 1}))
		must(t, err)
		if !whole {
			t.Fatal("a message without more is a whole step")
		}
		steps := rapid.IntRange(1, 6).Draw(t, "steps")
		for i := range steps {
			revision := fsm.Revision{Epoch: 1, Index: fsm.Index(i + 2)}
			var changes [][]byte
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				var p desired.Pieces
				for range rapid.IntRange(1, 4).Draw(t, "edits") {
					key := drawKey(t)
					if _, there := truth[key]; there && rapid.Bool().Draw(t, "remove") {
						delete(truth, key)
						must(t, p.Remove(key))
						break // a Changes puts first and removes then: one that does both to a key would be ambiguous
					}
					truth[key] = drawValue(t)
					must(t, p.Put(key, truth[key]))
				}
				parts, err := p.Bytes()
				must(t, err)
				changes = append(changes, parts...)
			}
			cut := rapid.IntRange(0, len(changes)).Draw(t, "cut")
			message := func(part [][]byte, more bool) *fairleadv1.SyncResponse {
				return &fairleadv1.SyncResponse{
					Revision: desired.RevisionMessage(revision), Changes: part, More: more, Digest: truth.digest(),
				}
			}
			if whole, err = followed.Add(message(changes[:cut], true)); err != nil || whole {
				t.Fatalf("a message with more: whole %v, %v", whole, err)
			}
			if whole, err = followed.Add(message(changes[cut:], false)); err != nil || !whole {
				t.Fatalf("the last message: whole %v, %v", whole, err)
			}
		}
		var fresh desired.Steps
		_, err = fresh.Add(truth.full(t, followed.State.Revision))
		must(t, err)
		kept, err := followed.State.Marshal()
		must(t, err)
		want, err := fresh.State.Marshal()
		must(t, err)
		if !bytes.Equal(kept, want) {
			t.Fatalf("followed %+v\nfresh    %+v", followed.State, fresh.State)
		}
		var got []netip.Prefix
		for _, a := range followed.State.Addresses() {
			got = append(got, a.Prefix)
			value, err := desired.AddressValue(a.Ports)
			must(t, err)
			if want := truth[desired.AddressKey(a.Prefix.Addr())]; !bytes.Equal(value, want) {
				t.Fatalf("%s answers on %v, want what %x says", a.Prefix, a.Ports, want)
			}
		}
		for _, want := range truth.addresses() {
			if !slices.Contains(got, want) {
				t.Fatalf("%s is missing in %v", want, got)
			}
		}
		if len(got) != len(truth.addresses()) || followed.State.AddressCount() != len(got) || followed.State.Len() != len(truth) {
			t.Fatalf("got %v, want %v", got, truth.addresses())
		}
	})
}

func TestPropertyWhatIsKeptComesBackOrIsRefused(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		truth := model{}
		for range rapid.IntRange(0, 8).Draw(t, "items") {
			truth[drawKey(t)] = drawValue(t)
		}
		var steps desired.Steps
		m := truth.full(t, fsm.Revision{Epoch: 2, Index: 7})
		m.Node = desired.NodeMessage("g", &desired.Config{
			Switches: []netip.Addr{netip.MustParseAddr("192.0.2.254")}, InTable: 101, OutTable: 102,
		}, []desired.Member{{Name: "m1", Address: "192.0.2.1:7443"}})
		_, err := steps.Add(m)
		must(t, err)
		data, err := steps.State.Marshal()
		must(t, err)
		back, err := desired.Unmarshal(data)
		must(t, err)
		if !reflect.DeepEqual(back, steps.State) {
			t.Fatalf("%+v came back as %+v", steps.State, back)
		}
		damaged := bytes.Clone(data)
		damaged[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if _, err := desired.Unmarshal(damaged); err == nil {
			t.Fatal("a damaged state was read")
		}
		if _, err := desired.Unmarshal(data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")]); err == nil {
			t.Fatal("a cut state was read")
		}
	})
}

func TestStepIsRefusedWhole(t *testing.T) {
	value, err := desired.AddressValue([]desired.Port{{Protocol: 6, Number: 80}})
	must(t, err)
	encode := func(key string, value []byte) [][]byte {
		data, err := proto.Marshal(&fairleadv1.Changes{Put: []*fairleadv1.Item{{Key: []byte(key), Value: value}}})
		must(t, err)
		return [][]byte{data}
	}
	key := desired.AddressKey(netip.MustParseAddr("192.0.2.10"))
	sum := desired.Digest{}.Plus(key, value)
	at := func(index uint64) *fairleadv1.Revision { return &fairleadv1.Revision{Epoch: 1, Index: index} }
	for name, c := range map[string]struct {
		message *fairleadv1.SyncResponse
		want    error
	}{
		"runs-back":       {&fairleadv1.SyncResponse{Revision: at(4), Digest: sum[:]}, desired.ErrRanBack},
		"older-epoch":     {&fairleadv1.SyncResponse{Revision: &fairleadv1.Revision{Index: 99}, Digest: sum[:]}, desired.ErrRanBack},
		"no-revision":     {&fairleadv1.SyncResponse{Digest: sum[:]}, nil},
		"other-group":     {&fairleadv1.SyncResponse{Revision: at(6), Digest: sum[:], Node: &fairleadv1.NodeState{Group: "h"}}, desired.ErrOtherGroup},
		"other-digest":    {&fairleadv1.SyncResponse{Revision: at(6)}, desired.ErrDigest},
		"short-address":   {&fairleadv1.SyncResponse{Revision: at(6), Changes: encode("a123", value), Digest: sum[:]}, nil},
		"port-too-large":  {&fairleadv1.SyncResponse{Revision: at(6), Changes: encode(key, []byte("\x0a\x04\x10\x80\x80\x08")), Digest: sum[:]}, nil},
		"short-node":      {&fairleadv1.SyncResponse{Revision: at(6), Changes: encode("nn1", []byte("\x0a\x01\x01")), Digest: sum[:]}, nil},
		"short-capture":   {&fairleadv1.SyncResponse{Revision: at(6), Changes: encode("rBalancingPolicy/a", []byte("\x3a\x03\x0a\x01\x01")), Digest: sum[:]}, nil},
		"garbage":         {&fairleadv1.SyncResponse{Revision: at(6), Changes: [][]byte{[]byte("\xff")}, Digest: sum[:]}, nil},
		"switch-no-addr":  {&fairleadv1.SyncResponse{Revision: at(6), Digest: sum[:], Node: &fairleadv1.NodeState{Group: "g", Config: &fairleadv1.NodeConfig{Switches: []string{"x"}}}}, nil},
		"endless-pending": {&fairleadv1.SyncResponse{Revision: at(6), More: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var steps desired.Steps
			_, err := steps.Add(&fairleadv1.SyncResponse{
				Revision: at(5), Full: true, Changes: encode(key, value), Digest: sum[:], Node: desired.NodeMessage("g", nil, nil),
			})
			must(t, err)
			before := steps.State
			for range 5000 {
				if _, err = steps.Add(c.message); err != nil {
					break
				}
			}
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if !reflect.DeepEqual(before, steps.State) {
				t.Errorf("the state changed to %+v", steps.State)
			}
		})
	}
}
