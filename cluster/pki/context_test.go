// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fairlead.io/fairlead/cluster/pki"
)

func TestContextFileMovesWithItsFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	here, there := filepath.Join(base, "here"), filepath.Join(base, "there")
	if err := os.MkdirAll(filepath.Join(here, "certs"), 0o700); err != nil {
		t.Fatal(err)
	}
	saved := pki.Context{Servers: []string{"192.0.2.1:7443"}, CA: filepath.Join(here, "certs", "ca.crt"), Cert: filepath.Join(here, "alice.crt"), Key: "/elsewhere/alice.key"}
	if err := saved.Save(filepath.Join(here, "context.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(here, there); err != nil {
		t.Fatal(err)
	}
	got, err := pki.LoadContext(filepath.Join(there, "context.yaml"))
	want := pki.Context{Servers: saved.Servers, CA: filepath.Join(there, "certs", "ca.crt"), Cert: filepath.Join(there, "alice.crt"), Key: saved.Key}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestContextErrorsNameFileFieldAndRemedyInOneLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"unknown-field": {"server: [a:1]\n", "server"},
		"wrong-type":    {"servers: 7\n", "servers"},
		"no-yaml":       {"servers: [\n", "context.yaml"},
		"no-port":       {"servers: [192.0.2.1]\n", "servers[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "context.yaml")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := pki.LoadContext(path)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
		})
	}
}

func TestContextFlagsWinOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	file := pki.Context{Servers: []string{"a:1"}, CA: "ca", Cert: "cert", Key: "key"}
	env := pki.ContextFromEnv(func(name string) string {
		return map[string]string{"FAIRLEAD_SERVER": "b:1, b:2,", "FAIRLEAD_CERT": "envcert", "FAIRLEAD_KEY": "envkey"}[name]
	})
	got := file.Overlay(env).Overlay(pki.Context{Key: "flagkey"})
	want := pki.Context{Servers: []string{"b:1", "b:2"}, CA: "ca", Cert: "envcert", Key: "flagkey"}
	if !reflect.DeepEqual(got, want) || got.Validate() != nil {
		t.Fatalf("got %+v (%v), want %+v", got, got.Validate(), want)
	}
	err := pki.Context{CA: "ca"}.Validate()
	if err == nil || !strings.Contains(err.Error(), "no server, no cert, no key; give --server, FAIRLEAD_SERVER") {
		t.Fatalf("incomplete context: %v", err)
	}
}
