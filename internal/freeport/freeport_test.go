// SPDX-License-Identifier: Apache-2.0

package freeport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"fairlead.io/fairlead/internal/freeport"
)

func TestDrawGivesAPortThatCanBeListenedAtAndNoConnectionTakes(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	for range 20 {
		port, err := freeport.Draw(loopback)
		if err != nil {
			t.Fatal(err)
		}
		if port >= 32768 {
			t.Fatalf("port %d may be taken by an outgoing connection", port)
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(loopback, port).String())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}

// asAnother has the test's own program draw ports, tell them, and stay until its input ends.
const asAnother = "FREEPORT_TEST_DRAWS"

const many = 700

func TestMain(m *testing.M) {
	if os.Getenv(asAnother) == "" {
		os.Exit(m.Run())
	}
	for range many {
		port, err := freeport.Draw(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(port)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// By chance alone two processes would draw thirty of so many ports both.
func TestDrawGivesNoPortThatAnotherProcessDrew(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux processes know of each other")
	}
	another := exec.Command("/proc/self/exe")
	another.Env, another.Stderr = append(os.Environ(), asAnother+"=1"), os.Stderr
	stdin, err := another.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := another.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := another.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		if err := another.Wait(); err != nil {
			t.Error(err)
		}
	}()
	theirs := map[string]bool{}
	for lines := bufio.NewScanner(stdout); len(theirs) < many && lines.Scan(); {
		theirs[lines.Text()] = true
	}
	if len(theirs) < many {
		t.Fatalf("it drew %d ports only", len(theirs))
	}
	for range many {
		port, err := freeport.Draw(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		if theirs[fmt.Sprint(port)] {
			t.Fatalf("another process drew %d", port)
		}
	}
}

// Nobody listens at any of them, as is the case until those do whom they were drawn for.
func TestDrawGivesNoPortTwice(t *testing.T) {
	drawn := map[uint16]bool{}
	for range 2000 {
		port, err := freeport.Draw(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		if drawn[port] {
			t.Fatalf("drew %d twice", port)
		}
		drawn[port] = true
	}
}

// A process that is being started has copies of all listeners until it runs its own program.
func TestDrawnPortCanBeListenedAtWhileProcessesStart(t *testing.T) {
	stop := make(chan struct{})
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.Command("/bin/true").Run() // that it was started is all
				}
			}
		})
	}
	for range 200 {
		port, err := freeport.Draw(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Error(err)
			break
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Error(err)
			break
		}
		_ = l.Close() // it was only tried
	}
	close(stop)
	starting.Wait()
}

func TestListenerIsAtAPortThatNoConnectionTakes(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	for range 20 {
		l, err := freeport.Listen(loopback)
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		if at.Addr() != loopback || at.Port() >= 32768 {
			t.Fatalf("listens at %s", at)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = net.Listen("tcp", at.String()); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}

func TestDrawFailsOnAnAddressThatIsNotOurs(t *testing.T) {
	if port, err := freeport.Draw(netip.MustParseAddr("192.0.2.1")); err == nil {
		t.Errorf("drew port %d", port)
	}
}
