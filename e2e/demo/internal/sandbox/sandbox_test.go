// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
)

var noSandbox error

func TestMain(m *testing.M) {
	code, ran, err := sandbox.Enter()
	if ran && err == nil {
		os.Exit(code)
	}
	noSandbox = err
	os.Exit(m.Run())
}

func require(t *testing.T) {
	t.Helper()
	if noSandbox != nil {
		if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
			t.Fatal(noSandbox)
		}
		t.Skip(noSandbox)
	}
}

func TestSandboxSeesOnlyItsOwn(t *testing.T) {
	require(t)
	if os.Getpid() != 1 {
		t.Errorf("pid %d, want 1: the kernel would not end the others with us", os.Getpid())
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Flags&net.FlagLoopback == 0 {
			t.Errorf("sees the interface %s", l.Name)
		}
	}
	if names, err := os.ReadDir("/run"); err != nil || len(names) > 0 {
		t.Errorf("/run has %v (%v)", names, err)
	}
	if pid, err := sandbox.OuterPID(); err != nil || pid == "" || pid == "1" {
		t.Errorf("outside we are %q (%v)", pid, err)
	}
}

func TestProcessRunsInItsNetworkAndIsEndedByItsID(t *testing.T) {
	require(t)
	network := sandbox.Namespace("elsewhere")
	if err := network.Make(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = network.Remove() }()
	if err := network.IP("address add 192.0.2.9/32 dev lo"); err != nil {
		t.Fatal(err)
	}
	boot := filepath.Join(t.TempDir(), "boot")
	if err := os.WriteFile(boot, []byte("another machine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &sandbox.Process{
		Name: "sleeper", Network: network, Log: filepath.Join(t.TempDir(), "log"), Boot: boot,
		Argv: []string{"sh", "-c", "ip -brief address; cat /proc/sys/kernel/random/boot_id; exec sleep 1000"},
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(p.LastWords(), "another machine"); {
		if time.Now().After(deadline) {
			t.Fatalf("said %q", p.LastWords())
		}
		time.Sleep(time.Millisecond)
	}
	if !strings.Contains(p.LastWords(), "192.0.2.9") {
		t.Errorf("its network is %q", p.LastWords())
	}
	if err := p.Start(); err == nil {
		t.Error("was started twice")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.Running() {
		t.Error("still runs")
	}
	if err := p.Kill(); err != nil {
		t.Errorf("ended twice: %v", err)
	}
}
