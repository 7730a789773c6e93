// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// insideNetns marks a program that runs in its own network namespace already.
const insideNetns = "FAIRLEAD_LAB_NETNS"

// Main is a TestMain that runs the tests in a network namespace of their own. Where none can be made, tests that
// need the lab are skipped with the reason, or fail if FAIRLEAD_REQUIRE_ROOT=1.
func Main(m *testing.M) { MainIn(m) }

// MainIn is Main in further namespaces of their own, each as a flag of unshare: "--mount" for tests whose members have disks (Options.Disk).
func MainIn(m *testing.M, further ...string) {
	if code, ran := Isolate(further...); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// Isolate runs this program once more, with its arguments, in a network namespace made for it, and gives its exit
// code. It does nothing in the program that runs there, and where no namespace can be made; New then says why.
// Flags of unshare name further namespaces.
func Isolate(further ...string) (code int, ran bool) {
	if os.Getenv(insideNetns) != "" || os.Getenv(testkit.FastVariable) == "1" {
		return 0, false
	}
	code, err := again(append([]string{"--net"}, further...))
	if err == nil {
		return code, true
	}
	if err := os.Setenv(noNetns, err.Error()); err != nil {
		panic(err)
	}
	return 0, false
}

// noNetns tells tests why there is no namespace.
const noNetns = "FAIRLEAD_LAB_NO_NETNS"

// again runs this program once more, inside.
func again(flags []string) (code int, err error) {
	if os.Getuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(flags, "ip", "link", "set", "lo", "up")...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("no network namespace can be made: %w: %s", err, strings.TrimSpace(string(out)))
	}
	script := `ip link set lo up && exec "$0" "$@"`
	args := append(append(flags, "sh", "-c", script), os.Args...)
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), insideNetns+"=1", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode(), nil
		}
		return 0, err
	}
	return 0, nil
}

// requireNetns skips a test, by name and with the reason, where Main could make no namespace.
func requireNetns(t testing.TB) {
	t.Helper()
	testkit.NotFast(t, "runs a group of processes")
	why := os.Getenv(noNetns)
	if why == "" {
		return
	}
	if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
