// SPDX-License-Identifier: Apache-2.0

package netnstest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"fairlead.io/fairlead/internal/lifeline"
)

// apart marks the process that Main started.
const apart = "FAIRLEAD_TEST_APART"

// Main runs the tests of a package in a process whose network namespace has a loopback and nothing else, and gives the exit code. What they
// dial that nobody serves fails there at once, where a machine with a way out of it would wait for answers that never come. Where
// the machine allows no namespaces, the tests run in this process.
func Main(m *testing.M) int {
	if os.Geteuid() != 0 {
		return m.Run()
	}
	if os.Getenv(apart) != "" {
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ip link set lo up: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Env = append(os.Environ(), apart+"=1")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := lifeline.Start(c); err != nil {
		fmt.Fprintln(os.Stderr, "tests run in the network namespace that is there:", err)
		return m.Run()
	}
	if err := c.Wait(); err != nil && c.ProcessState.ExitCode() < 0 {
		fmt.Fprintln(os.Stderr, "tests:", err) // a signal ended them
		return 1
	}
	return c.ProcessState.ExitCode()
}
