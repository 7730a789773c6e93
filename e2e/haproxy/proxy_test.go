// SPDX-License-Identifier: Apache-2.0

// Package haproxy_test runs fairlead-driver-haproxy as it ships against a real HAProxy, with requests through it, all on
// loopback. Fairlead's own client makes the calls. Each test names the promise that it holds the driver to.
//
//	requests ──▶ HAProxy ──▶ "static", a server of the configuration
//	                └──────▶ pods, which the driver puts on it
package haproxy_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/testkit"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// proxy is a running HAProxy with the backends "web" and "fixed", which takes no servers at run time.
type proxy struct {
	t      testing.TB
	dir    string
	path   string
	socket string
	url    string
	cmd    *exec.Cmd
}

// socketGroup may open HAProxy's socket.
func socketGroup() int {
	if os.Getuid() == 0 {
		return 61490
	}
	return os.Getgid() // nobody else may give files away
}

const configuration = `global
  stats socket %[1]s mode 660 gid %[4]d level admin
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend web
  bind 127.0.0.1:%[2]d
  default_backend web
backend web
  balance roundrobin
  server static %[3]s weight 1
backend fixed
  balance static-rr
  server static %[3]s
`

// startProxy runs HAProxy until the test ends; static is the server of its configuration. Without HAProxy on this machine
// the test is skipped, or fails if FAIRLEAD_REQUIRE_TOOLS=1.
func startProxy(t testing.TB, static *pod) *proxy {
	t.Helper()
	path := birdtest.Find(t, "haproxy")
	dir, err := os.MkdirTemp("", "haproxy") // short: the path of a socket has room for some hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	port := birdtest.FreePort(t, loopback)
	p := &proxy{t: t, dir: dir, path: path, socket: filepath.Join(dir, "admin.sock"), url: fmt.Sprintf("http://127.0.0.1:%d/", port)}
	if err := os.WriteFile(p.file("cfg"), fmt.Appendf(nil, configuration, p.socket, port, static.address, socketGroup()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			text, _ := os.ReadFile(p.file("log"))
			t.Logf("HAProxy's log:\n%s", text)
		}
	})
	return p
}

func (p *proxy) file(name string) string { return filepath.Join(p.dir, name) }

// start runs a new process, which takes over from the one of args, if there are some.
func (p *proxy) start(args ...string) {
	p.t.Helper()
	log, err := os.OpenFile(p.file("log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(p.path, append([]string{"-db", "-f", p.file("cfg")}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := lifeline.Start(p.cmd); err != nil {
		p.t.Fatalf("start HAProxy: %v", err)
	}
	pid := fmt.Sprintf("Pid: %d\n", p.cmd.Process.Pid)
	testkit.Until(p.t, "HAProxy answers", func() bool {
		answer, err := p.try("show info")
		return err == nil && strings.Contains(answer, pid)
	})
}

// kill ends HAProxy at once.
func (p *proxy) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}

// reload runs a new process with the same configuration, which the old one leaves its work to.
func (p *proxy) reload() {
	p.t.Helper()
	old := p.cmd
	p.start("-sf", fmt.Sprint(old.Process.Pid))
	_ = old.Wait() // it has no connections that last
}

func (p *proxy) try(line string) (string, error) {
	conn, err := net.DialTimeout("unix", p.socket, testkit.Patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// ask gives HAProxy a command, as its operator does.
func (p *proxy) ask(line string) string {
	p.t.Helper()
	answer, err := p.try(line)
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	return answer
}

// servers lists name, address, administrative state and weight of the servers of "web", as HAProxy says.
func (p *proxy) servers() map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for i, line := range strings.Split(p.ask("show servers state web"), "\n") {
		if f := strings.Fields(line); i > 1 && len(f) > 18 {
			out[f[3]] = fmt.Sprintf("%s:%s state %s weight %s", f[4], f[18], f[6], f[7])
		}
	}
	return out
}

// bound is how many connections a server of "web" takes at most, empty for as many as come.
func (p *proxy) bound(server string) string {
	p.t.Helper()
	for _, line := range strings.Split(p.ask("show stat"), "\n") {
		if f := strings.Split(line, ","); len(f) > 6 && f[0] == "web" && f[1] == server {
			return f[6]
		}
	}
	p.t.Fatalf("server %s is not there", server)
	return ""
}
