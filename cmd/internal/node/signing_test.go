// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/share"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// mute is a speaker that nobody hears, and that has a session with each peer of its own.
type mute struct {
	sessions map[string]string
	links    []bgp.Link
}

func (mute) Apply(context.Context, bgp.Desired) error    { return nil }
func (mute) Written(context.Context) (bool, error)       { return true, nil }
func (mute) Mend(context.Context, time.Duration) error   { return nil }
func (mute) Describe(chan<- *prometheus.Desc)            {}
func (mute) Collect(chan<- prometheus.Metric)            {}
func (mute) Detach(context.Context) error                { return nil }
func (m mute) Links(context.Context) ([]bgp.Link, error) { return m.links, nil }
func (m mute) Sessions(context.Context) (map[string]string, error) {
	return maps.Clone(m.sessions), nil
}

// speakingWith is the BGP side of a node with a folder of passwords.
func speakingWith(t *testing.T, folder string) *speaking {
	t.Helper()
	c := config.Agent{Node: "n1", StateDir: t.TempDir(), BGP: &config.NodeBGP{ASN: 64512, PasswordDir: folder}}
	e := Edges{Speaker: func(config.Agent, *slog.Logger) (Announcing, error) {
		return mute{sessions: map[string]string{"plain": "established"}}, nil
	}}
	s, err := openSpeaking(c, e, func() time.Duration { return 0 }, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func told(t *testing.T, s *speaking) {
	t.Helper()
	peer := func(name string, last byte) bgp.Peer {
		return bgp.Peer{Name: name, Address: netip.AddrFrom4([4]byte{192, 0, 2, last}), RemoteASN: 65001, Families: []bgp.Family{bgp.IPv4}}
	}
	m := share.Share{
		Revision: bgp.Revision{Epoch: 1, Index: 7}, Peers: []bgp.Peer{peer("plain", 1)},
		Signed: []share.SignedPeer{{Peer: peer("tor", 2), PasswordFrom: "Secret/a/tor"}},
	}.Message()
	if err := s.Tell(m); err != nil {
		t.Fatal(err)
	}
}

// passwordsOf are those of the peers that are announced to.
func passwordsOf(s *speaking) (out []string) {
	for _, p := range s.Routes().Peers {
		out = append(out, p.Name+" "+string(p.Password))
	}
	return out
}

// A peer whose password the node lacks is left out, by name and with what to do, and comes once the file is there, though members
// tell nothing new; others are there all the time.
func TestPeerComesWithItsPasswordFile(t *testing.T) {
	folder := t.TempDir()
	s := speakingWith(t, folder)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.passwords.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	told(t, s)
	if have := passwordsOf(s); !slices.Equal(have, []string{"plain "}) {
		t.Errorf("peers are %q", have)
	}
	s.look(t.Context())
	states, _ := s.Sessions()
	if states["plain"] != "established" || !strings.Contains(states["tor"], "Secret/a/tor under bgp.passwordDir") || !slices.Equal(s.leftOut(), []string{"tor"}) {
		t.Errorf("sessions are %q, left out %q", states, s.leftOut())
	}
	path := filepath.Join(folder, "Secret/a/tor")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("one\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a signed peer", func() bool { return slices.Equal(passwordsOf(s), []string{"plain ", "tor one"}) })
	told(t, s) // by another member, after the file went
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	told(t, s)
	if have := passwordsOf(s); !slices.Equal(have, []string{"plain ", "tor one"}) || len(s.leftOut()) > 0 {
		t.Errorf("peers are %q, left out %q", have, s.leftOut())
	}
}

// A node without a folder of passwords says that it needs one.
func TestNodeWithoutPasswordFolderSaysSo(t *testing.T) {
	s := speakingWith(t, "")
	told(t, s)
	s.look(t.Context())
	if states, _ := s.Sessions(); !strings.Contains(states["tor"], "bgp.passwordDir in agent.yaml") {
		t.Errorf("sessions are %q", states)
	}
}

// A switch that the agent's earlier run announced to, without a password or by one that is lost, may hold what that announced: no
// withdrawal ends before it cannot. One that nobody announced to is not waited for.
func TestWithdrawalsWaitForPeersThatAreLeftOut(t *testing.T) {
	rev := fsm.Revision{Epoch: 1, Index: 7}
	for name, c := range map[string]struct {
		before string
		held   bool
	}{"announced-before": {"192.0.2.2", true}, "new": {"192.0.2.9", false}} {
		t.Run(name, func(t *testing.T) {
			s := speakingWith(t, t.TempDir())
			s.before = bgp.Routes{Peers: []bgp.Peer{{Name: "tor", Address: netip.MustParseAddr(c.before), RemoteASN: 65001}}}
			told(t, s)
			s.markWithdrawn(rev)
			if held := s.Marks().Withdrawn != rev; held != c.held {
				t.Errorf("held back: %t", held)
			}
			s.holds = s.holds.Add(-s.before.Peers[0].Normal(0).Keeps())
			s.release()
			if have := s.Marks().Withdrawn; have != rev {
				t.Errorf("in the end it is %s", have)
			}
		})
	}
}

// What is on the wire of the sessions is told with which sessions these are, and with those alone that the node was told to have.
func TestMarksSayWhichSessionsCount(t *testing.T) {
	s := speakingWith(t, "")
	rev := fsm.Revision{Epoch: 1, Index: 7}
	s.mark(func(m *agent.SpeakerMarks) { m.Announced = rev })
	links := []bgp.Link{
		{Peer: netip.MustParseAddr("192.0.2.1"), Session: 1, IPv4: true, Written: true}, {Peer: netip.MustParseAddr("192.0.2.9"), Session: 2, IPv4: true, Written: true},
	}
	s.speaker = mute{links: links}
	if s.lookWhoIsSent(t.Context()); s.Marks().Sessions.Told || s.Marks().Announced != (fsm.Revision{}) {
		t.Errorf("before it was told anything it says %+v", s.Marks())
	}
	told(t, s) // of one peer, and one that is left out for its password
	if s.lookWhoIsSent(t.Context()); !s.Marks().Equal(agent.SpeakerMarks{Announced: rev, Sessions: fsm.Sessions{Told: true, Open: []fsm.Reach{{Peer: "plain", IPv4: true}}}}) {
		t.Errorf("then it says %+v", s.Marks())
	}
}

// What is said of a session goes with heartbeats, which carry nothing that is no text.
func TestStatesOfSessionsAreCutBetweenCharacters(t *testing.T) {
	s := speakingWith(t, t.TempDir())
	s.speaker = mute{sessions: map[string]string{"tor": "x" + strings.Repeat("é", maxState)}}
	s.look(t.Context())
	if states, _ := s.Sessions(); states["tor"] != "x"+strings.Repeat("é", maxState/2-1) {
		t.Errorf("%d bytes: %q", len(states["tor"]), states["tor"])
	}
}
