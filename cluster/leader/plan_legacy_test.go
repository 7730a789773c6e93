// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// neighboursScene is a group whose only source shows a config map of the old system.
type neighboursScene struct {
	*scene
	peers  []fsm.Peer
	faults []error
}

func newNeighboursScene(t failer) *neighboursScene {
	s := &neighboursScene{scene: newScene(t)}
	s.options.LegacyPeers = func(world.ConfigMap) ([]fsm.Peer, []error, error) { return s.peers, s.faults, nil }
	s.world.ConfigMaps = []*world.ConfigMap{{Meta: world.Meta{ID: world.ID{Namespace: "kube-system", Name: configMapGoBGP}}}}
	return s
}

// edit has the config map list neighbours, each as its description and its address, and tells what is proposed for that.
func (s *neighboursScene) edit(neighbours ...string) []string {
	s.peers = nil
	for _, n := range neighbours {
		at := strings.LastIndexByte(n, ' ')
		s.peers = append(s.peers, fsm.Peer{Name: fsm.PeerName(n[:at]), Address: netip.MustParseAddr(n[at+1:]), ASN: 65001, IPv4: true})
	}
	return s.group.settle(s.input())
}

// names are those of the record's peers, without the config map's, by address.
func (s *neighboursScene) names() map[netip.Addr]string {
	out := map[netip.Addr]string{}
	for _, p := range fsm.List[*fsm.Peer](s.group.state.Read(), fsm.TablePeers) {
		_, out[p.Address], _ = strings.Cut(string(p.Name), "#")
	}
	return out
}

// Descriptions are free text: neighbours with the same one are neighbours all the same.
func TestPlanKeepsNeighboursOfOneDescriptionApart(t *testing.T) {
	s := newNeighboursScene(t)
	s.edit("leaf 192.0.2.4", "leaf@192.0.2.6 192.0.2.5", "leaf 192.0.2.6", "spine 192.0.2.7", "leaf 192.0.2.8")
	if have, want := fmt.Sprint(s.names()), "map[192.0.2.4:leaf 192.0.2.5:leaf@192.0.2.6 192.0.2.6:leaf@192.0.2.6@192.0.2.6 192.0.2.7:spine 192.0.2.8:leaf@192.0.2.8]"; have != want {
		t.Errorf("peers are %s, want %s", have, want)
	}
}

// While neighbours of a file cannot be used, those that can come and change, also their names, and none goes: it may be one of those. Each fault is told.
func TestPlanTakesNoNeighbourAwayWhileSomeCannotBeUsed(t *testing.T) {
	s := newNeighboursScene(t)
	s.edit("leaf 192.0.2.4", "spine 192.0.2.5")
	s.faults = []error{errors.New("line 7: no peer-as")}
	s.edit("stem 192.0.2.4", "root 192.0.2.6")
	if have, want := fmt.Sprint(s.names()), "map[192.0.2.4:stem 192.0.2.5:spine 192.0.2.6:root]"; have != want {
		t.Errorf("with a fault peers are %s, want %s", have, want)
	}
	in := s.input()
	in.Record = s.group.state.Read()
	told := slices.ContainsFunc(Plan(in).Waiting, func(e Explanation) bool {
		return e.Kind == string(fsm.TablePeers) && e.Name == configMapGoBGP && strings.HasPrefix(e.Text, "line 7: no peer-as; until then")
	})
	if !told {
		t.Error("the fault is told of nowhere")
	}
	s.faults = nil
	s.edit("stem 192.0.2.4", "root 192.0.2.6")
	if have, want := fmt.Sprint(s.names()), "map[192.0.2.4:stem 192.0.2.6:root]"; have != want {
		t.Errorf("once it was mended peers are %s, want %s", have, want)
	}
}

// A peer keeps its name, whoever comes or goes beside it, and wherever it stands in the file.
func TestPlanRenamesNoNeighbourForAnother(t *testing.T) {
	s := newNeighboursScene(t)
	for _, step := range []struct {
		file []string
		want string
	}{
		{[]string{"leaf 192.0.2.5"}, "[PutPeer leaf]"},
		{[]string{"leaf 192.0.2.4", "leaf 192.0.2.5"}, "[PutPeer leaf@192.0.2.4]"},
		{[]string{"leaf 192.0.2.5", "leaf 192.0.2.4"}, "[]"},
		{[]string{"leaf 192.0.2.4"}, "[DeletePeer leaf]"},
		{[]string{"leaf 192.0.2.3", "leaf 192.0.2.4"}, "[PutPeer leaf]"},
	} {
		lines := s.edit(step.file...)
		for i, line := range lines {
			kind, name, _ := strings.Cut(line, " ")
			_, name, _ = strings.Cut(name, "#")
			name, _, _ = strings.Cut(name, " ")
			lines[i] = kind + " " + name
		}
		if have := fmt.Sprint(lines); have != step.want {
			t.Errorf("%q: proposed is %s, want %s", step.file, have, step.want)
		}
	}
}

// Whatever a file becomes, every neighbour is a peer, and none that keeps description and address gets another name.
func TestPropertyNeighboursKeepTheirNames(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newNeighboursScene(t)
		described := map[netip.Addr]string{}
		for range rapid.IntRange(1, 5).Draw(t, "edits") {
			before, beforeDescribed := s.names(), described
			described = rapid.MapOfN(rapid.Map(rapid.IntRange(4, 7), func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }),
				rapid.SampledFrom([]string{"leaf", "leaf@192.0.2.5", "spine"}), 0, 4).Draw(t, "file")
			var file []string
			for address, description := range described {
				file = append(file, description+" "+address.String())
			}
			slices.Sort(file)
			s.edit(rapid.Permutation(file).Draw(t, "order")...)
			after := s.names()
			if len(after) != len(described) {
				t.Fatalf("%q: peers are %v", file, after)
			}
			for address, description := range described {
				if beforeDescribed[address] == description && before[address] != after[address] {
					t.Fatalf("%q: %s was %q and is %q", file, address, before[address], after[address])
				}
			}
		}
	})
}
