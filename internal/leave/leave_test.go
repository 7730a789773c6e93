// SPDX-License-Identifier: Apache-2.0

package leave

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/lifeline"
)

// hangs has the test's program be a process that waits for what never comes.
const hangs = "FAIRLEAD_TEST_HANGS"

func TestMain(m *testing.M) {
	if os.Getenv(hangs) != "" {
		ctx, _ := bounded("hangs", 10*time.Millisecond, os.Exit)
		fmt.Println("waits")
		<-ctx.Done()
		select {}
	}
	os.Exit(m.Run())
}

func TestASignalEndsAProcessThatWaitsForEver(t *testing.T) {
	// What runs the tests may have been started to outlive its terminal. A signal that is caught here is no ignored one for children.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(by.String(), func(t *testing.T) { endsBy(t, by) })
	}
}

func endsBy(t *testing.T, by syscall.Signal) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hangs+"=1")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lifeline.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "waits\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(by); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	if !strings.HasPrefix(said.String(), "hangs: has not ended within 10ms") {
		t.Errorf("it said %q", said.String())
	}
}
