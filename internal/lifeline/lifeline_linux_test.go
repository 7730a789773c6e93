// SPDX-License-Identifier: Apache-2.0

package lifeline

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

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
	testkit.Until(t, "the thread ends", func() bool {
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
	testkit.Until(t, "the process ends", func() bool { return ended(pid) })
}

// What a command has started ends with it when its context ends, as make does not see to.
func TestWhatACommandStartedEndsWithIt(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 600 & echo $!; wait")
	EndTogether(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "%d\n", &pid); err != nil {
		t.Fatal(err)
	}
	end()
	_ = cmd.Wait() // it was told to end
	testkit.Until(t, "what it started ends", func() bool { return ended(pid) })
}

func ended(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return os.IsNotExist(err) || strings.Contains(string(stat), ") Z ")
}
