// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/cluster/pki"
)

func TestPKIMakesFilesThatTheGroupAccepts(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	ca, out := filepath.Join(dir, "ca"), filepath.Join(dir, "out")
	var made madeCA
	if err := json.Unmarshal([]byte(fairlead(t, "pki", "init", "--dir", ca, "-o", "json").mustPrint(t)), &made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key of the CA: %v, %v", info, err)
	}
	for _, args := range [][]string{
		{"member", "m1", "--host", "192.0.2.1", "--host", "m1.example"}, {"agent", "node-1"}, {"operator", "alice"}, {"viewer", "vera", "--ttl", "1h"},
	} {
		var got issued
		args = append([]string{"pki", "issue"}, append(args, "--dir", ca, "--out", out, "-o", "json")...)
		if err := json.Unmarshal([]byte(fairlead(t, args...).mustPrint(t)), &got); err != nil {
			t.Fatal(err)
		}
		source, err := pki.OpenSource(pki.Files{CA: got.CA, Cert: got.Cert, Key: got.Key}, slog.New(slog.DiscardHandler))
		if err != nil || source.Material().Identity.String() != args[2]+"/"+args[3] || got.Identity != args[2]+"/"+args[3] {
			t.Errorf("%v: %+v, %v", args, got, err)
		}
	}
}

func TestPKIFailuresChangeNothing(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	ca, out := filepath.Join(dir, "ca"), filepath.Join(dir, "out")
	fairlead(t, "pki", "init", "--dir", ca).mustPrint(t)
	key, err := os.ReadFile(filepath.Join(ca, pki.CAKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	issue := func(args ...string) ran {
		return fairlead(t, append([]string{"pki", "issue", "--dir", ca, "--out", out}, args...)...)
	}
	fairlead(t, "pki", "init", "--dir", ca).mustFail(t, exitFailed, pki.CAKeyFile, "never overwritten", "another folder")
	fairlead(t, "pki", "init", "--dir", filepath.Join(dir, "x"), "--ttl", "-1h").mustFail(t, exitFailed, "negative lifetime")
	fairlead(t, "pki", "issue", "operator", "alice", "--dir", filepath.Join(dir, "none"), "--out", out).mustFail(t, exitFailed, filepath.Join(dir, "none"), "fairlead pki init")
	issue("member", "m1").mustFail(t, exitFailed, "member/m1", "host")
	issue("operator", "Alice!").mustFail(t, exitFailed, "Alice!", "lower-case")
	issue("operator", "alice", "--server", "nowhere").mustFail(t, exitFailed, "nowhere", "host:port")
	issue("operator", "alice", "--out", ca).mustFail(t, exitFailed, ca, "another folder")
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
	if again, err := os.ReadFile(filepath.Join(ca, pki.CAKeyFile)); err != nil || string(again) != string(key) {
		t.Errorf("the CA's key changed: %v", err)
	}
}
