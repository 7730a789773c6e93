// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cmd/internal/config"
)

// runRecover runs `raft recover` over a function that stands for the package that knows data folders.
func runRecover(t *testing.T, recoverFolder recoverer, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := &cli{out: &stdout, err: &stderr}
	code := execute(t.Context(), newRoot(c, newRaftRecover(c, recoverFolder)), append([]string{"recover"}, args...), &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

func controllerYAML(t *testing.T, data string) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "controller.yaml"), fmt.Sprintf(
		"name: m1\ndataDir: %s\ntls: {ca: ca.crt, cert: m1.crt, key: m1.key}\nlisten: {api: \"192.0.2.1:7443\", raft: \"192.0.2.1:7444\"}\n"+
			"members: [{name: m1, api: \"192.0.2.1:7443\", raft: \"192.0.2.1:7444\"}]\n", data))
}

func TestRecoverNamesWhoMustBeWiped(t *testing.T) {
	data := t.TempDir()
	path := controllerYAML(t, data)
	done := func(c config.Controller, _ func([]cluster.Peer) error, _ *slog.Logger) (cluster.Recovered, error) {
		if c.DataDir != data || c.Name != "m1" || c.Advertise.Raft != "192.0.2.1:7444" {
			t.Errorf("recovers %+v", c)
		}
		return cluster.Recovered{ServerID: "m1-k3x9", Index: 121, Others: []cluster.Peer{
			{Name: "m2", ID: "m2-k3x9", Address: "192.0.2.2:7444"}, {Name: "m3", ID: "m3-k3x9", Address: "192.0.2.3:7444"},
		}}, nil
	}
	for _, format := range []string{"table", "json", "yaml"} {
		golden(t, "raft-recover-"+format, runRecover(t, done, "--config", path, "--yes", "-o", format).mustPrint(t))
	}
}

func TestRecoverChangesNothingUnlessAllIsInOrder(t *testing.T) {
	untouched := func(config.Controller, func([]cluster.Peer) error, *slog.Logger) (cluster.Recovered, error) {
		t.Error("the folder was touched")
		return cluster.Recovered{}, nil
	}
	data, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	runRecover(t, untouched, "--config", controllerYAML(t, data)).mustFail(t, exitUsage, data, "must be wiped", "--yes")
	runRecover(t, untouched, "--config", missing, "--yes").mustFail(t, exitFailed, missing)
	runRecover(t, untouched, "--config", controllerYAML(t, missing), "--yes").mustFail(t, exitFailed, missing, "no such file")
	garbage := write(t, filepath.Join(t.TempDir(), "controller.yaml"), "nam: m1\n")
	runRecover(t, untouched, "--config", garbage, "--yes").mustFail(t, exitFailed, garbage, "nam")
	runRecover(t, func(config.Controller, func([]cluster.Peer) error, *slog.Logger) (cluster.Recovered, error) {
		return cluster.Recovered{}, errors.New("recover x: the folder holds nothing; choose another")
	}, "--config", controllerYAML(t, data), "--yes").mustFail(t, exitFailed, "holds nothing")
}

// While another member can be reached nothing is recovered: it, and whoever else runs, may be the group.
func TestRecoverIsRefusedWhileAnotherMemberAnswers(t *testing.T) {
	data := t.TempDir()
	path := controllerYAML(t, data)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	asked := false
	recover := func(_ config.Controller, confirm func([]cluster.Peer) error, _ *slog.Logger) (cluster.Recovered, error) {
		asked = confirm != nil
		if asked {
			if err := confirm([]cluster.Peer{{Name: "m2", ID: "m2-k3x9", Address: other.Addr().String()}}); err != nil {
				return cluster.Recovered{}, err
			}
		}
		return cluster.Recovered{ServerID: "m1-k3x9", Index: 121}, nil
	}
	runRecover(t, recover, "--config", path, "--yes").mustFail(t, exitFailed, "m2 at "+other.Addr().String())
	runRecover(t, recover, "--config", path, "--yes", "--force").mustPrint(t)
	if asked {
		t.Error("--force asks all the same")
	}
	_ = other.Close()
	runRecover(t, recover, "--config", path, "--yes").mustPrint(t)
	if !asked {
		t.Error("nobody was asked")
	}
}
