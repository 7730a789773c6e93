// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/freeport"
)

var update = flag.Bool("update", false, "write the golden files anew")

// world is a CA, an operator's files, and members that answer as the test wants.
type world struct {
	t     *testing.T
	group *grouptest.World
	ca    pkitest.CA
	files pki.Files // of operator/alice
	enrol fairleadv1connect.EnrolServiceHandler
}

// newWorld keeps the developer's own context and environment out of the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	isolate(t)
	group := grouptest.NewWorld(t)
	w := &world{t: t, group: group, ca: group.CA()}
	w.files = w.ca.Issue(t, pki.Request{Role: pki.Operator, Name: "alice"})
	return w
}

func isolate(t *testing.T) {
	t.Helper()
	for _, name := range []string{"SERVER", "CA", "CERT", "KEY", "CONTEXT"} {
		t.Setenv("FAIRLEAD_"+name, "")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
}

// serve starts a member's API on loopback and gives its address.
func (w *world) serve(raft fairleadv1connect.RaftServiceHandler, record fairleadv1connect.RecordServiceHandler) string {
	w.t.Helper()
	mounts := []grouptest.Mount{
		func(o ...connect.HandlerOption) (string, http.Handler) {
			return fairleadv1connect.NewRaftServiceHandler(raft, o...)
		},
		func(o ...connect.HandlerOption) (string, http.Handler) {
			return fairleadv1connect.NewRecordServiceHandler(record, o...)
		},
	}
	if w.enrol != nil {
		mounts = append(mounts, func(o ...connect.HandlerOption) (string, http.Handler) {
			return fairleadv1connect.NewEnrolServiceHandler(w.enrol, o...)
		})
	}
	return w.group.Serve(w.t, "m1", mounts...).Address
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// deadAddress is one where nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// ran is what a command line did.
type ran struct {
	code           int
	stdout, stderr string
}

func fairlead(t *testing.T, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// run runs a command line as alice against the servers.
func (w *world) run(servers []string, args ...string) ran {
	w.t.Helper()
	return w.runAs(w.files, servers, args...)
}

func (w *world) runAs(files pki.Files, servers []string, args ...string) ran {
	w.t.Helper()
	flags := []string{"--ca", files.CA, "--cert", files.Cert, "--key", files.Key}
	for _, server := range servers {
		flags = append(flags, "--server", server)
	}
	return fairlead(w.t, append(flags, args...)...)
}

// mustPrint fails unless the command is done without a word on stderr, and gives its stdout.
func (r ran) mustPrint(t *testing.T) string {
	t.Helper()
	if r.code != exitDone || r.stderr != "" {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	return r.stdout
}

// mustFail fails unless the command printed nothing, and one line on stderr with all of the texts.
func (r ran) mustFail(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code || r.stdout != "" {
		t.Errorf("exit %d, want %d; stdout %q, stderr %q", r.code, code, r.stdout, r.stderr)
	}
	if strings.Count(r.stderr, "\n") != 1 || !strings.HasSuffix(r.stderr, "\n") || !strings.HasPrefix(r.stderr, "fairlead: ") {
		t.Errorf("not one line: %q", r.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("%q is not in %q", text, r.stderr)
		}
	}
}

// golden compares with testdata/name.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (go test -update writes it anew); got:\n%s", path, got)
	}
}
