// SPDX-License-Identifier: Apache-2.0

package lifeline

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
)

// The first thread is the tests' own: it never ends, whatever runs on it.
func init() { runtime.LockOSThread() }

// A process goes on when the thread ends that asked for it.
func TestAProcessOutlivesTheThreadThatAskedForIt(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	asked, thread := make(chan error), 0
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		thread = syscall.Gettid()
		asked <- Start(cmd)
	}()
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("cat: %v", err)
		}
	})
	until(t, "the thread to end", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return os.IsNotExist(err)
	})
	if _, err := fmt.Fprintln(in, "still there"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "still there\n" {
		t.Fatalf("cat says %q: %v", line, err)
	}
}

// A process ends with the one that started it, also if that was killed.
func TestAProcessEndsWithThisOne(t *testing.T) {
	const child = "FAIRLEAD_TEST_LIFELINE_CHILD"
	if os.Getenv(child) != "" {
		cmd := exec.Command("sleep", "600")
		if err := Start(cmd); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("started %d\n", cmd.Process.Pid)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, _ := cmd.Output() // it is killed
	var pid int
	if _, err := fmt.Sscanf(string(out), "started %d", &pid); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	until(t, "the process to end", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return os.IsNotExist(err) || strings.Contains(string(stat), ") Z ")
	})
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
