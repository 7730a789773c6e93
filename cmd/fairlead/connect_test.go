// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/pki"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagsWinOverEnvironmentOverContext(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	context := func(name string) string {
		return write(t, filepath.Join(dir, name), fmt.Sprintf("servers: [%s:1]\nca: /%[1]s/ca\ncert: /%[1]s/cert\nkey: /%[1]s/key\n", name))
	}
	env := map[string]string{}
	c := &cli{getenv: func(name string) string { return env[name] }}
	expect := func(what, server, ca, key string) {
		t.Helper()
		got, err := c.findGroup()
		if err != nil || got.Servers[0] != server || got.CA != ca || got.Key != key {
			t.Errorf("%s: %+v, %v; want %s %s %s", what, got, err, server, ca, key)
		}
	}
	env["XDG_CONFIG_HOME"] = dir
	context("fairlead/context.yaml")
	expect("default context", "fairlead/context.yaml:1", "/fairlead/context.yaml/ca", "/fairlead/context.yaml/key")
	env["FAIRLEAD_CONTEXT"] = context("named")
	expect("named by the environment", "named:1", "/named/ca", "/named/key")
	env["FAIRLEAD_CA"], env["FAIRLEAD_SERVER"] = "/env/ca", "env:1,env:2"
	expect("environment over context", "env:1", "/env/ca", "/named/key")
	c.flags = pki.Context{Servers: []string{"flag:1"}, Key: "/flag/key"}
	expect("flags over environment", "flag:1", "/env/ca", "/flag/key")
	c.contextFile = context("flagged")
	expect("a context named by flag is a flag", "flag:1", "/flagged/ca", "/flag/key")
	c.contextFile = write(t, filepath.Join(dir, "partial"), "servers: [\"a:1\"]\n")
	if got, err := c.findGroup(); err == nil || got.CA != "" {
		t.Errorf("a context named by flag leaves the environment out: %+v, %v", got, err)
	}
	c.contextFile, env["FAIRLEAD_CERT"], env["FAIRLEAD_CONTEXT"] = "", "/env/cert", filepath.Join(dir, "missing")
	expect("complete without a context", "flag:1", "/env/ca", "/flag/key")
}

func TestNothingConfiguredTellsHowTo(t *testing.T) {
	isolate(t)
	fairlead(t, "raft", "status").mustFail(t, exitFailed, "no server, no ca, no cert, no key", "--server", "FAIRLEAD_SERVER", "context file")
	fairlead(t, "get", "svc", "--server", "127.0.0.1:1").mustFail(t, exitFailed, "no ca, no cert, no key", "--ca", "FAIRLEAD_CA")
	missing := filepath.Join(t.TempDir(), "context.yaml")
	fairlead(t, "raft", "status", "--context", missing).mustFail(t, exitFailed, missing, "no such file")
	garbage := write(t, filepath.Join(t.TempDir(), "context.yaml"), "servers: [\n- }")
	fairlead(t, "raft", "status", "--context", garbage).mustFail(t, exitFailed, garbage)
	t.Setenv("FAIRLEAD_CONTEXT", missing)
	fairlead(t, "raft", "status").mustFail(t, exitFailed, missing, "no such file")
	fairlead(t, "raft", "status", "--server", "nowhere", "--ca", "a", "--cert", "b", "--key", "c").mustFail(t, exitFailed, `"nowhere" is not host:port`, "7443")
}

func TestContextFromPKIFindsTheGroup(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	out := t.TempDir()
	fairlead(t, "pki", "issue", "viewer", "vera", "--dir", string(w.ca), "--out", out, "--server", server).mustPrint(t)
	fairlead(t, "raft", "peers", "--context", filepath.Join(out, "context.yaml")).mustPrint(t)
	t.Setenv("FAIRLEAD_CONTEXT", filepath.Join(out, "context.yaml"))
	fairlead(t, "raft", "peers").mustPrint(t)
}

func TestBadCertificateFilesAreNamedWithTheRemedy(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	other := w.ca.Issue(t, pki.Request{Role: pki.Operator, Name: "bob"})
	garbage := write(t, filepath.Join(t.TempDir(), "garbage.pem"), "not\nPEM\n")
	torn := write(t, filepath.Join(t.TempDir(), "torn.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	missing := filepath.Join(t.TempDir(), "missing.pem")
	past := func() time.Time { return time.Now().Add(-48 * time.Hour) }
	expired := w.ca.Issue(t, pki.Request{Role: pki.Operator, Name: "alice", TTL: time.Hour, Now: past})
	future := w.ca.Issue(t, pki.Request{Role: pki.Operator, Name: "alice", Now: func() time.Time { return time.Now().Add(48 * time.Hour) }})
	for name, test := range map[string]struct {
		files  pki.Files
		file   string
		remedy string
	}{
		"missing-ca":      {pki.Files{CA: missing, Cert: w.files.Cert, Key: w.files.Key}, missing, "name the ca.crt"},
		"missing-cert":    {pki.Files{CA: w.files.CA, Cert: missing, Key: w.files.Key}, missing, "`fairlead pki issue`"},
		"missing-key":     {pki.Files{CA: w.files.CA, Cert: w.files.Cert, Key: missing}, missing, "`fairlead pki issue`"},
		"garbage-ca":      {pki.Files{CA: garbage, Cert: w.files.Cert, Key: w.files.Key}, garbage, "name the ca.crt"},
		"torn-ca":         {pki.Files{CA: torn, Cert: w.files.Cert, Key: w.files.Key}, torn, "name the ca.crt"},
		"leaf-as-ca":      {pki.Files{CA: w.files.Cert, Cert: w.files.Cert, Key: w.files.Key}, w.files.Cert, "name the ca.crt"},
		"garbage-cert":    {pki.Files{CA: w.files.CA, Cert: garbage, Key: w.files.Key}, garbage, "`fairlead pki issue`"},
		"torn-cert":       {pki.Files{CA: w.files.CA, Cert: torn, Key: w.files.Key}, torn, "`fairlead pki issue`"},
		"garbage-key":     {pki.Files{CA: w.files.CA, Cert: w.files.Cert, Key: garbage}, garbage, "`fairlead pki issue`"},
		"mismatching-key": {pki.Files{CA: w.files.CA, Cert: w.files.Cert, Key: other.Key}, other.Key, "`fairlead pki issue`"},
		"expired":         {expired, expired.Cert, "issue it anew with `fairlead pki issue`"},
		"not-yet-valid":   {future, future.Cert, "clock"},
	} {
		t.Run(name, func(t *testing.T) {
			w.runAs(test.files, []string{server}, "raft", "status").mustFail(t, exitFailed, test.file, test.remedy)
		})
	}
}

func TestStrangersAreToldWhy(t *testing.T) {
	w, stranger := newWorld(t), newWorld(t)
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	// The member's certificate is not from the CA that the caller trusts.
	w.runAs(stranger.files, []string{server}, "raft", "status").mustFail(t, exitFailed, server, "name the ca.crt of this group")
	// The caller's is not from the CA that it says its group has: nobody need be asked.
	mixed := pki.Files{CA: w.files.CA, Cert: stranger.files.Cert, Key: stranger.files.Key}
	w.runAs(mixed, []string{server}, "raft", "status").mustFail(t, exitFailed, mixed.Cert, mixed.CA, "nobody in the group would take it")
	// The caller's is not from a CA that the member trusts, though from one of those that the caller does.
	w.runAs(w.trusting(stranger), []string{server}, "raft", "status").mustFail(t, exitFailed, "raft status", "it does not accept our certificate", "its log says why")
}

// trusting gives a stranger's certificate beside the CAs of both groups.
func (w *world) trusting(stranger *world) pki.Files {
	w.t.Helper()
	var both []byte
	for _, name := range []string{w.files.CA, stranger.files.CA} {
		text, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		both = append(both, text...)
	}
	return pki.Files{CA: write(w.t, filepath.Join(w.t.TempDir(), "both.crt"), string(both)), Cert: stranger.files.Cert, Key: stranger.files.Key}
}

func TestAnyServerThatAnswersWillDo(t *testing.T) {
	w := newWorld(t)
	alive := w.serve(&fakeRaft{}, &fakeRecord{})
	w.run([]string{deadAddress(t), deadAddress(t), alive}, "raft", "peers").mustPrint(t)
}

func TestUnreachableGroupTellsEachServerAndTheRemedy(t *testing.T) {
	w := newWorld(t)
	one, two := deadAddress(t), deadAddress(t)
	w.run([]string{one, two}, "get", "services").mustFail(t, exitFailed,
		"fairlead: get services: connect to "+one, "connect to "+two, "connection refused", "start a controller there, or name others with --server")
	w.run([]string{"no-such-host.invalid:7443"}, "get", "services").mustFail(t, exitFailed, "no-such-host.invalid", "name others with --server")
}

func TestFaultsOfTheMemberAreToldAsSuch(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{refuse: errors.New("disk on fire")}, fairleadv1connect.UnimplementedRecordServiceHandler{})
	w.run([]string{server}, "raft", "snapshot").mustFail(t, exitFailed, "raft snapshot at "+server+": disk on fire")
	w.run([]string{server}, "get", "nodes").mustFail(t, exitFailed, "get nodes at "+server, "not implemented", "release")
}

// TestFrozenServerIsPassedOver: one that accepts connections and says nothing.
func TestFrozenServerIsPassedOver(t *testing.T) {
	w := newWorld(t)
	frozen := listen(t)
	t.Cleanup(func() { _ = frozen.Close() })
	alive := w.serve(&fakeRaft{}, &fakeRecord{})
	w.run([]string{frozen.Addr().String(), alive}, "raft", "peers").mustPrint(t)
}

func TestInterruptEndsTheCommand(t *testing.T) {
	w := newWorld(t)
	frozen := listen(t)
	t.Cleanup(func() { _ = frozen.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	code := run(ctx, []string{
		"raft", "remove", "m3", "--server", frozen.Addr().String(),
		"--ca", w.files.CA, "--cert", w.files.Cert, "--key", w.files.Key,
	}, strings.NewReader(""), &stdout, &stderr)
	ran{code, stdout.String(), stderr.String()}.mustFail(t, exitFailed, "raft remove m3", "interrupted")
}
