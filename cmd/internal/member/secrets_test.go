// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Passwords of an old installation and of objects are read where they are; all others are looked for in Secrets and files, but
// those that only nodes need.
func TestPasswordsAreFoundWherePeersNameThem(t *testing.T) {
	state := fsm.New()
	apply := applyTo(t, state)
	apply(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
	names := map[string]string{
		"toml": passwordFromTOML + "192.0.2.1", "object": leader.PasswordName("object"), "unseen": leader.PasswordName("unseen"),
		"secret": "Secret/a/b", "node": "Secret/a/node", "none": "",
	}
	for i, name := range slices.Sorted(slices.Values([]string{"toml", "object", "unseen", "secret", "node", "none"})) {
		apply(&fsm.PutPeer{Peer: fsm.Peer{
			Name: fsm.PeerName(name), Address: netip.MustParseAddr(fmt.Sprint("192.0.2.", i+1)), ASN: 65001, PasswordFrom: names[name],
			Nodes: fsm.PeerNodes{Speak: name == "node"},
		}})
	}
	worlds := func() []world.World {
		return []world.World{{Peers: []*world.Peer{{Meta: world.Meta{ID: world.ID{Name: "object"}}, Password: "shown"}}}}
	}
	if have := namedElsewhere(state, worlds); !slices.Equal(have, []string{"Secret/a/b", "BGPPeer/unseen"}) {
		t.Errorf("looked for are %q", have)
	}
	toml := filepath.Join(t.TempDir(), "config_bgp.toml")
	text := "[global.config]\n  as = 64512\n  router-id = \"10.0.0.1\"\n[[neighbors]]\n  [neighbors.config]\n    neighbor-address = \"192.0.2.1\"\n    peer-as = 65001\n    auth-password = \"of the file\"\n"
	if err := os.WriteFile(toml, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	find := secretsOf(config.BGP{ConfigFile: toml}, state, worlds, func(_ bgp.Peer, from string) (bgp.Secret, bool) {
		return bgp.Secret("elsewhere " + from), true
	})
	for name, want := range map[string]bgp.Secret{
		"toml": "of the file", "object": "shown", "unseen": "elsewhere BGPPeer/unseen", "secret": "elsewhere Secret/a/b",
	} {
		if have, ok := find(bgp.Peer{Name: name}, names[name]); !ok || have != want {
			t.Errorf("%s: %q, %t, want %q", name, string(have), ok, string(want))
		}
	}
}

// Another password in an object is in force although nothing of the record is another, and so is one that comes, or goes.
func TestAnotherPasswordInAnObjectIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := fsm.New()
		apply := applyTo(t, state)
		apply(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
		apply(&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: netip.MustParseAddr("192.0.2.1"), ASN: 65001, PasswordFrom: leader.PasswordName("tor")}})
		var shown atomic.Value
		shown.Store("x")
		worlds := func() []world.World {
			if shown.Load() == "" {
				return nil
			}
			return []world.World{{Peers: []*world.Peer{{Meta: world.Meta{ID: world.ID{Name: "tor"}}, Password: world.Secret(shown.Load().(string))}}}}
		}
		find := secretsOf(config.BGP{}, state, worlds, func(bgp.Peer, string) (bgp.Secret, bool) { return "", false })
		r := newRoutes(state, "m1", config.BGP{}, find, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.followOwnPasswords(ctx, ownPasswordsEvery) }()
		for _, want := range []string{"x", "y", "", "z"} {
			shown.Store(want)
			time.Sleep(2 * ownPasswordsEvery)
			select {
			case <-r.Changed():
			default:
				if want != "x" {
					t.Errorf("nobody is told of password %q", want)
				}
			}
			switch peers := r.Routes().Peers; {
			case want == "" && len(peers) > 0, want != "" && (len(peers) != 1 || string(peers[0].Password) != want):
				t.Errorf("the password is %q, and peers are %v", want, peers)
			}
		}
		select {
		case <-r.Changed():
			t.Error("told once more, of nothing")
		case <-time.After(4 * ownPasswordsEvery):
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
