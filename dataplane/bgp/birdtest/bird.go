// SPDX-License-Identifier: Apache-2.0

package birdtest

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/testkit"
)

// RequireTools is the environment variable that, set to 1, makes a missing tool a failure rather than a skip.
const RequireTools = "FAIRLEAD_REQUIRE_TOOLS"

// Bird is a running BIRD.
type Bird struct {
	t    testing.TB
	conf Config
	dir  string
	path string
	cmd  *exec.Cmd
	exit chan error
}

// Start runs BIRD until the test ends, and returns once it answers. Without BIRD on this machine the test is skipped,
// or fails if RequireTools asks for that.
func Start(t testing.TB, c Config) *Bird {
	t.Helper()
	path := Find(t, "bird")
	// Not t.TempDir: the path of a socket has room for some hundred bytes.
	dir, err := os.MkdirTemp("", "bird")
	if err != nil {
		t.Fatalf("start bird: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c = c.withDefaults()
	if c.Port == 0 {
		c.Port = FreePort(t, c.Address)
	}
	b := &Bird{t: t, conf: c, dir: dir, path: path}
	b.Run()
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			t.Logf("bird's log:\n%s", b.Log())
		}
	})
	return b
}

// Find returns the path of a tool of routing suites, or skips the test.
func Find(t testing.TB, tool string) string {
	t.Helper()
	testkit.NotFast(t, "starts "+tool)
	for _, dir := range []string{"/usr/sbin", "/usr/lib/frr", "/usr/local/sbin", "/usr/bin"} {
		p := filepath.Join(dir, tool)
		if s, err := os.Stat(p); err == nil && s.Mode().IsRegular() {
			return p
		}
	}
	if p, err := exec.LookPath(tool); err == nil {
		return p
	}
	why := fmt.Sprintf("%s is not installed on this machine", tool)
	if os.Getenv(RequireTools) == "1" {
		t.Fatalf("%s, and %s=1 asks for it", why, RequireTools)
	}
	t.Skip(why)
	return ""
}

// FreePort returns a TCP port of address that nobody listens at just now.
func FreePort(t testing.TB, address netip.Addr) uint16 {
	t.Helper()
	port, err := freeport.Draw(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Address is where BIRD listens.
func (b *Bird) Address() netip.Addr { return b.conf.Address }

// Port is the port at which BIRD listens.
func (b *Bird) Port() uint16 { return b.conf.Port }

// PID is the process id of a BIRD that runs.
func (b *Bird) PID() int { return b.cmd.Process.Pid }

// ASN is BIRD's AS number.
func (b *Bird) ASN() uint32 { return b.conf.ASN }

// Run starts BIRD again after Kill, at the same port, with an empty table.
func (b *Bird) Run() {
	b.t.Helper()
	b.write(b.conf)
	// In the foreground, so that it is ours to end by its process id.
	args := append(slices.Clone(b.conf.Within), b.path, "-f", "-c", b.file("conf"), "-s", b.file("ctl"), "-P", b.file("pid"))
	b.cmd = exec.Command(args[0], args[1:]...)
	var stderr strings.Builder
	b.cmd.Stderr = &stderr
	if err := lifeline.Start(b.cmd); err != nil {
		b.t.Fatalf("start bird: %v", err)
	}
	b.exit = make(chan error, 1)
	go func(cmd *exec.Cmd, exit chan error) { exit <- cmd.Wait() }(b.cmd, b.exit)
	deadline := time.Now().Add(patience)
	for {
		if _, err := b.ask("show status"); err == nil {
			return
		}
		select {
		case err := <-b.exit:
			b.cmd = nil
			b.t.Fatalf("bird ended at once: %v\n%s%s", err, stderr.String(), b.Log())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("bird does not answer:\n%s", b.Log())
		}
	}
}

// Kill ends BIRD at once (SIGKILL), as a switch that loses power. It may be run again.
func (b *Bird) Kill() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.exit
	b.cmd = nil
	_ = os.Remove(b.file("ctl"))
}

// Configure changes BIRD's configuration while it runs. Address and port stay.
func (b *Bird) Configure(c Config) {
	b.t.Helper()
	c.Address, c.Port = b.conf.Address, b.conf.Port
	b.conf = c.withDefaults()
	b.write(b.conf)
	if _, err := b.ask("configure"); err != nil {
		b.t.Fatalf("configure bird: %v", err)
	}
}

// Log returns what BIRD has logged.
func (b *Bird) Log() string {
	text, err := os.ReadFile(b.file("log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	return string(text)
}

// Command sends BIRD a command of its command line, such as "show protocols all", and returns the answer.
func (b *Bird) Command(line string) string {
	b.t.Helper()
	answer, err := b.ask(line)
	if err != nil {
		b.t.Fatalf("bird: %s: %v", line, err)
	}
	return answer
}

func (b *Bird) file(ext string) string { return filepath.Join(b.dir, "bird."+ext) }

func (b *Bird) write(c Config) {
	b.t.Helper()
	if err := os.WriteFile(b.file("conf"), []byte(c.text(b.file("log"))), 0o644); err != nil {
		b.t.Fatalf("configure bird: %v", err)
	}
}
