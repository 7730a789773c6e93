// SPDX-License-Identifier: Apache-2.0

package netnstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
	"fairlead.io/fairlead/internal/testkit"
)

// Namespace is a network namespace of one test.
type Namespace struct {
	t    testing.TB
	name string
	fd   int
}

// New makes a namespace whose loopback is up. Its name serves messages only.
func New(t testing.TB, name string) *Namespace {
	t.Helper()
	testkit.NotFast(t, "makes network namespaces")
	fd, err := netns.New()
	if err != nil {
		why := fmt.Sprintf("needs root, to make network namespaces: %v", err)
		if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	n := &Namespace{t: t, name: name, fd: fd}
	t.Cleanup(func() { _ = unix.Close(fd) }) // a descriptor that is open already closes
	// Without detection of duplicates link-local addresses serve at once, too: routers ask for neighbours from them.
	for _, of := range []string{"all", "default"} {
		n.SetSysctl("ipv6/conf/"+of+"/accept_dad", "0")
	}
	n.Run("ip", "link", "set", "lo", "up")
	return n
}

// Here is the namespace that the process is in: one that Command ran this program in.
func Here(t testing.TB) *Namespace {
	t.Helper()
	fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open own network namespace: %v", err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &Namespace{t: t, name: "here", fd: fd}
}

// Command is a program that is to run inside. Unlike with Do, another thread may start it: see lifeline.Start.
func (n *Namespace) Command(program string, args ...string) *exec.Cmd {
	in := fmt.Sprintf("--net=/proc/%d/fd/%d", os.Getpid(), n.fd)
	return exec.Command("nsenter", append([]string{in, "--", program}, args...)...)
}

// FD is a file descriptor of the namespace, open until the test ends.
func (n *Namespace) FD() int { return n.fd }

// Do runs f inside. Goroutines that it starts run outside.
func (n *Namespace) Do(f func() error) error { return netns.Do(n.fd, f) }

// Run runs a program inside to its end, and gives its output. The test ends when it fails.
func (n *Namespace) Run(program string, args ...string) string {
	n.t.Helper()
	out, err := n.Try(program, args...)
	if err != nil {
		n.t.Fatalf("%s: %s %s: %v\n%s", n.name, program, strings.Join(args, " "), err, out)
	}
	return out
}

// Try is Run that gives the error back.
func (n *Namespace) Try(program string, args ...string) (output string, err error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	err = n.Do(func() error {
		out, err := cmd.CombinedOutput()
		output = string(out)
		return err
	})
	return output, err
}

// Feed is Run of a program that reads standard input.
func (n *Namespace) Feed(stdin, program string, args ...string) {
	n.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.Stdin = strings.NewReader(stdin)
	if err := n.Do(func() error {
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}); err != nil {
		n.t.Fatalf("%s: %s: %v", n.name, program, err)
	}
}

// Repeated is how many requests for TCP connections the kernel has sent once more because nobody answered. Who is answered or refused at once
// costs none, however late the machine tells him.
func (n *Namespace) Repeated() (count int) {
	n.t.Helper()
	var text []byte
	if err := n.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/netstat")
		return err
	}); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines[:len(lines)-1] { // one of names before one of numbers
		if at := slices.Index(strings.Fields(line), "TCPSynRetrans"); at > 0 {
			if count, err := strconv.Atoi(strings.Fields(lines[i+1])[at]); err == nil {
				return count
			}
		}
	}
	n.t.Fatalf("%s: the kernel does not count repeated requests for connections", n.name)
	return 0
}

// Sysctl reads a setting below /proc/sys/net, such as ipv4/ip_forward.
func (n *Namespace) Sysctl(name string) string {
	n.t.Helper()
	var text []byte
	if err := n.Do(func() (err error) {
		text, err = os.ReadFile(filepath.Join("/proc/sys/net", name))
		return err
	}); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	return strings.TrimSpace(string(text))
}

// SetSysctl writes one.
func (n *Namespace) SetSysctl(name, value string) {
	n.t.Helper()
	if err := n.Do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0)
	}); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
}

// Link is one end of a cable: where it is plugged in, the interface's name there, and its addresses (prefixes).
type Link struct {
	In        *Namespace
	Name      string
	Addresses []string
}

// Join lays a cable (a veth pair) between two namespaces, and brings both ends up. IPv6 addresses serve at once.
func Join(a, b Link) {
	a.In.t.Helper()
	// The pair is made in a's namespace under a name that nobody uses, and one end handed to b's by its descriptor.
	a.In.Run("ip", "link", "add", a.Name, "type", "veth", "peer", "name", "join0")
	target := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), b.In.fd)
	a.In.Run("ip", "link", "set", "join0", "netns", target)
	b.In.Run("ip", "link", "set", "join0", "name", b.Name)
	for _, l := range []Link{a, b} {
		for _, address := range l.Addresses {
			l.In.Run("ip", "address", "add", address, "dev", l.Name, "nodad")
		}
		l.In.Run("ip", "link", "set", l.Name, "up")
	}
}
