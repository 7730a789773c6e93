// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// design §4, disk: a damaged log ends its member with path and remedy; the others go on and nothing is lost.
func TestDamagedLogStopsItsMemberOnly(t *testing.T) {
	l := started(t, lab.Options{})
	l.Agreed()
	stop := l.NeverMissing(prefix(0))
	m3 := l.Member("m3")
	m3.Kill()
	path := filepath.Join(m3.DataDir, "raft.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 8192; i < len(data); i += 512 { // behind the file's own header pages
		data[i] ^= 0xff
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m3.Start()
	if code := m3.Ended(testkit.Patience); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	oneLine(t, lastLine(m3.Log()), m3.DataDir)
	l.Manifests.Service(0, 3)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(3))
	stop()
}

func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return lines[len(lines)-1]
}

// oneLine checks that an error is one line and names what it has to.
func oneLine(t *testing.T, stderr string, names ...string) {
	t.Helper()
	if strings.Count(strings.TrimRight(stderr, "\n"), "\n") != 0 || !strings.HasPrefix(stderr, "fairlead: ") {
		t.Errorf("not one line of ours: %q", stderr)
	}
	for _, n := range names {
		if !strings.Contains(stderr, n) {
			t.Errorf("%q does not name %q", stderr, n)
		}
	}
}

// design §11: roles by certificate; who may only look changes nothing, and a stranger is not heard at all.
func TestWrongCertificatesAreRefused(t *testing.T) {
	l := started(t, lab.Options{})
	before := l.Leader()
	viewer := l.Issue(pki.Viewer, "looker")
	server := before.Address + ":7443"
	_, stderr, code := l.CLI("raft", "transfer", "--server", server, "--ca", viewer.CA, "--cert", viewer.Cert, "--key", viewer.Key)
	if code != 1 {
		t.Errorf("a viewer's transfer ended with %d", code)
	}
	oneLine(t, stderr, "viewer")
	dir := t.TempDir()
	if err := pki.Init(filepath.Join(dir, "ca"), pki.CAOptions{}); err != nil {
		t.Fatal(err)
	}
	issued, err := pki.Issue(filepath.Join(dir, "ca"), pki.Request{Role: pki.Operator, Name: "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := issued.Write(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	// With the group's CA alone the command itself refuses the stranger's certificate. Who names both CAs is refused by the member.
	_, stderr, code = l.CLI("get", "routes", "--server", server, "--ca", viewer.CA, "--cert", stranger.Cert, "--key", stranger.Key)
	if code != 1 {
		t.Errorf("a stranger's get ended with %d", code)
	}
	oneLine(t, stderr, stranger.Cert)
	both := filepath.Join(dir, "both.crt")
	ours, err := os.ReadFile(viewer.CA)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(stranger.CA)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(both, append(ours, theirs...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code = l.CLI("get", "routes", "--server", server, "--ca", both, "--cert", stranger.Cert, "--key", stranger.Key)
	if code != 1 {
		t.Errorf("a stranger's get ended with %d", code)
	}
	oneLine(t, stderr, server)
	if !strings.Contains(before.Log(), "handshake refused") && !strings.Contains(before.Log(), "refused") {
		t.Error("the member logged no refusal")
	}
	if now := l.Leader(); now != before {
		t.Errorf("the leadership went from %s to %s", before.Name, now.Name)
	}
}

// A configuration is refused as a whole, in one line that names file and field, and nothing is made.
func TestBadConfigurationStartsNothing(t *testing.T) {
	l := lab.New(t, lab.Options{Stopped: true})
	m := l.Member("m1")
	text, err := os.ReadFile(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct{ from, to, names string }{
		"unknown-field":  {"dataDir:", "datadir:", "datadir"},
		"no-certificate": {".crt", ".crtt", ".crtt"},
		"bad-port":       {":7444\", health", ":74444\", health", "listen.raft"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "controller.yaml")
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), change.from, change.to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stderr, code := l.CLI("controller", "--config", path)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			oneLine(t, stderr, change.names)
		})
	}
}
