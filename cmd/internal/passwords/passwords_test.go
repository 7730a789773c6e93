// SPDX-License-Identifier: Apache-2.0

package passwords

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

var tor = bgp.Peer{Name: "tor", Address: netip.MustParseAddr("192.0.2.1")}

// vault is an API server with one Secret.
type vault struct {
	data map[string][]byte
	err  error
}

func (v *vault) read(context.Context, string, string) (map[string][]byte, error) {
	return v.data, v.err
}

const fromSecret = "Secret/metallb-system/tor"

func named() []string { return []string{fromSecret} }

func TestPasswordFromASecretCountsUntilThereIsAnotherOne(t *testing.T) {
	var log testkit.Log
	v := &vault{data: map[string][]byte{"password": []byte("one\n")}}
	k := New(Options{Named: named, Secrets: v.read, Log: slog.New(slog.NewTextHandler(&log, nil))})
	has := func(want bgp.Secret) {
		t.Helper()
		if have, ok := k.Of(tor, fromSecret); ok != (want != "") || have != want {
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
			if changed := k.look(t.Context()); changed != step.changed {
				t.Errorf("%+v: changed %t", step, changed)
			}
			step.changed = false
		}
		has(step.want)
	}
	for _, want := range []string{"does not exist; create it", "key password: is missing", "goes_on_with_former=true"} {
		if n := strings.Count(log.String(), want); n < 1 || n > 2 {
			t.Errorf("%q is told %d times in\n%s", want, n, log.String())
		}
	}
	if strings.Contains(log.String(), "one\"") || strings.Contains(log.String(), "two") {
		t.Errorf("a password is in the log:\n%s", log.String())
	}
}

// Whoever starts while the API server is away, or after the file went, peers by the password of the earlier run.
func TestPasswordOfAnEarlierRunIsEnough(t *testing.T) {
	routes := &bgp.Routes{Peers: []bgp.Peer{
		{Name: "other", Address: netip.MustParseAddr("192.0.2.1"), Password: "wrong"},
		{Name: "tor", Address: netip.MustParseAddr("192.0.2.1"), Password: "kept"},
	}}
	k := New(Options{
		Named: named, Secrets: (&vault{err: errors.New("the server is away")}).read, Folder: t.TempDir(),
		Stored: func() (*bgp.Routes, error) { return routes, nil }, Log: slog.New(slog.DiscardHandler),
	})
	if have, ok := k.Of(tor, fromSecret); !ok || have != "kept" {
		t.Fatalf("the password is %q, %t", string(have), ok)
	}
	if k.look(t.Context()) {
		t.Error("a look that failed changed something")
	}
	if have, ok := k.Of(tor, fromSecret); !ok || have != "kept" {
		t.Errorf("after a look that failed it is %q, %t", string(have), ok)
	}
}

// A file is read at once, wherever there is no Secret; a name leads nowhere out of the folder.
func TestFilesAreReadAtOnce(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, fromSecret, "of a file\n")
	write(t, filepath.Dir(folder), "outside", "of another folder")
	k := New(Options{Named: named, Folder: folder, Log: slog.New(slog.DiscardHandler)})
	if have, ok := k.Of(tor, fromSecret); !ok || have != "of a file" {
		t.Errorf("the password is %q, %t", string(have), ok)
	}
	for _, from := range []string{"../outside", filepath.Join(filepath.Dir(folder), "outside"), "Secret", "Secret/metallb-system/none"} {
		if have, ok := k.Of(tor, from); ok {
			t.Errorf("%s is %q", from, string(have))
		}
	}
}

func write(t interface{ Fatal(...any) }, folder, from, text string) {
	path := filepath.Join(folder, from)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Whatever becomes of a Secret and of a file: what was read last goes on, a file counts as long as the Secret never had one, each
// change is told once, and what cannot sign never counts. No password is told to anybody.
func TestPropertyThePasswordIsTheOneReadLast(t *testing.T) {
	texts := []string{"", "\n", "s3cret-one", "s3cret-two\n", strings.Repeat("s3cret-", 12)}
	good := func(text string) bgp.Secret {
		if text = strings.TrimSpace(text); len(text) > 80 {
			return ""
		}
		return bgp.Secret(text)
	}
	testkit.Check(t, func(rt *rapid.T) {
		var log testkit.Log
		folder := t.TempDir()
		o := Options{Named: named, Folder: folder, Log: slog.New(slog.NewTextHandler(&log, nil))}
		v := &vault{err: errors.New("away")}
		kube := rapid.Bool().Draw(rt, "api server")
		if kube {
			o.Secrets = v.read
		}
		k := New(o)
		var secret, file, want bgp.Secret // what can be read, and what counts
		everSecret := false
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"secret", "file", "look", "ask"}).Draw(rt, "step") {
			case "secret":
				text := rapid.SampledFrom(texts).Draw(rt, "secret")
				v.data, v.err = map[string][]byte{"password": []byte(text)}, nil
				if rapid.Bool().Draw(rt, "gone") {
					text, v.data, v.err = "", nil, errors.New("gone")
				}
				if secret = good(text); !kube {
					secret = ""
				}
			case "file":
				text := rapid.SampledFrom(texts).Draw(rt, "file")
				write(rt, folder, fromSecret, text)
				if rapid.Bool().Draw(rt, "removed") {
					text = ""
					_ = os.Remove(filepath.Join(folder, fromSecret))
				}
				file = good(text)
			case "look":
				before := want
				switch {
				case secret != "":
					want, everSecret = secret, true
				case file != "" && !everSecret:
					want = file
				}
				if changed := k.look(t.Context()); changed != (want != before) {
					rt.Fatalf("%q became %q, and changed is %t", string(before), string(want), changed)
				}
			case "ask":
				if want == "" {
					want = file
				}
				if have, ok := k.Of(tor, fromSecret); ok != (want != "") || have != want {
					rt.Fatalf("the password is %q, %t, not %q", string(have), ok, string(want))
				}
			}
		}
		if strings.Contains(log.String(), "s3cret") {
			rt.Fatalf("a password is in the log:\n%s", log.String())
		}
	})
}
