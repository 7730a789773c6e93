// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// vault is an API server with one Secret.
type vault struct {
	data map[string][]byte
	err  error
}

func (v *vault) read(context.Context, string, string) (map[string][]byte, error) {
	return v.data, v.err
}

const fromSecret = "Secret/metallb-system/tor"

// withPeer is a record with one peer whose password is in a Secret.
func withPeer(t *testing.T) *fsm.State {
	t.Helper()
	s := fsm.New()
	applyTo(t, s)(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: netip.MustParseAddr("192.0.2.1"), ASN: 65001, PasswordFrom: fromSecret}})
	return s
}

func TestPasswordFromASecretCountsUntilThereIsAnotherOne(t *testing.T) {
	var log strings.Builder
	v := &vault{data: map[string][]byte{"password": []byte("one\n")}}
	p := newPasswords(withPeer(t), func() (*bgp.Routes, error) { return nil, nil }, slog.New(slog.NewTextHandler(&log, nil)))
	p.read = v.read
	has := func(want bgp.Secret) {
		t.Helper()
		if have, ok := p.of(fromSecret); ok != (want != "") || have != want {
			t.Errorf("the password is %q, %t", string(have), ok)
		}
	}
	has("")
	for _, step := range []struct {
		data    string
		err     error
		changed bool
		want    bgp.Secret
	}{
		{data: "one\n", changed: true, want: "one"},
		{data: "one", want: "one"},
		{err: errors.New("Secret metallb-system/tor: does not exist; create it"), want: "one"},
		{data: "", want: "one"},
		{data: "two", changed: true, want: "two"},
	} {
		v.data, v.err = map[string][]byte{"password": []byte(step.data)}, step.err
		for range 2 {
			if changed := p.look(t.Context()); changed != step.changed {
				t.Errorf("%+v: changed %t", step, changed)
			}
			step.changed = false
		}
		has(step.want)
	}
	for _, want := range []string{"does not exist; create it", "no key password", "goes_on_with_former=true"} {
		if n := strings.Count(log.String(), want); n < 1 || n > 2 {
			t.Errorf("%q is told %d times in\n%s", want, n, log.String())
		}
	}
	if strings.Contains(log.String(), "one\"") || strings.Contains(log.String(), "two") {
		t.Errorf("a password is in the log:\n%s", log.String())
	}
}

// A member that starts while the API server is away peers by the password of its earlier run.
func TestPasswordOfAnEarlierRunIsEnough(t *testing.T) {
	routes := &bgp.Routes{Peers: []bgp.Peer{
		{Name: "other", Address: netip.MustParseAddr("192.0.2.1"), Password: "wrong"},
		{Name: "tor", Address: netip.MustParseAddr("192.0.2.1"), Password: "kept"},
	}}
	p := newPasswords(withPeer(t), func() (*bgp.Routes, error) { return routes, nil }, slog.New(slog.DiscardHandler))
	if have, ok := p.of(fromSecret); !ok || have != "kept" {
		t.Fatalf("the password is %q, %t", string(have), ok)
	}
	p.read = (&vault{err: errors.New("the server is away")}).read
	if p.look(t.Context()) {
		t.Error("a look that failed changed something")
	}
	if have, ok := p.of(fromSecret); !ok || have != "kept" {
		t.Errorf("after a look that failed it is %q, %t", string(have), ok)
	}
}
