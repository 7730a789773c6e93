// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listen serves one connection at a time at a socket until the test ends.
func listen(t *testing.T, serve func(line string, conn net.Conn)) Socket {
	t.Helper()
	dir, err := os.MkdirTemp("", "haproxy") // short: the path of a socket has room for some hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			serve(line, conn)
			conn.Close()
		}
	}()
	return Socket(path)
}

func TestAnExchangeIsALineAndAllThatComesBack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("3 web server\n", 100_000)
	s := listen(t, func(line string, conn net.Conn) { _, _ = io.WriteString(conn, line+long) })
	if got, err := s.Ask(t.Context(), "show info; show backend"); err != nil || got != "show info; show backend\n"+long {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestASocketWithoutHAProxyIsUnreachable(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Socket{"none": Socket(filepath.Join(t.TempDir(), "s")), "a-file": Socket(os.Args[0])} {
		if _, err := s.Ask(t.Context(), "show info"); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), string(s)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Once HAProxy may have read a command, nobody claims that it did not.
func TestAnExchangeThatBreaksLeavesOpenWhatHappened(t *testing.T) {
	t.Parallel()
	s := listen(t, func(string, net.Conn) {})
	if _, err := s.Ask(t.Context(), "del server web/a"); err == nil || errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "del server") {
		t.Errorf("an HAProxy that hangs up: %v", err)
	}
	held := make(chan struct{})
	s = listen(t, func(_ string, conn net.Conn) { <-held })
	defer close(held)
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := s.Ask(ctx, "del server web/a"); err == nil || errors.Is(err, ErrUnreachable) || time.Since(began) >= socketTimeout { // not by its own patience
		t.Errorf("an HAProxy that hangs: %v after %v", err, time.Since(began))
	}
}
