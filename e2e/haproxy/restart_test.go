// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/testkit"
)

// stage is HAProxy with two pods on it.
func stage(t *testing.T) (*proxy, *process, map[string]string, string) {
	t.Helper()
	static, a, b := startPod(t, "static"), startPod(t, "a"), startPod(t, "b")
	p := startProxy(t, static)
	d := startDriver(t, p)
	d.ensure(a.address, webhook.Map{"weight": "2"})
	d.ensure(b.address, webhook.Map{"maxconn": "9"})
	return p, d, p.servers(), a.address
}

// serverOf is what the driver calls its server with an IPv4 address.
func serverOf(address string) string { return "fl-" + strings.Replace(address, ":", "_", 1) }

// back waits until HAProxy has its servers back, and all of them answer.
func back(t *testing.T, p *proxy, want map[string]string) {
	t.Helper()
	testkit.Until(t, "HAProxy has its servers back", func() bool { return maps.Equal(p.servers(), want) })
	answering(t, p.url, map[string]int{"static": 8, "a": 16, "b": 8})
}

func TestARestartedHAProxyGetsItsServersBack(t *testing.T) {
	p, _, want, _ := stage(t)
	p.kill()
	p.start()
	back(t, p, want)
}

func TestAReloadedHAProxyGetsItsServersBack(t *testing.T) {
	p, _, want, _ := stage(t)
	p.reload()
	back(t, p, want)
}

func TestAKilledDriverPutsBackWhatHAProxyForgotMeanwhile(t *testing.T) {
	p, d, want, address := stage(t)
	d.end(syscall.SIGKILL)
	back(t, p, want) // HAProxy needs no driver to serve
	p.kill()
	p.start()
	d.start()
	back(t, p, want)
	// It goes on where the killed one was.
	d.gone(address)
	delete(want, serverOf(address))
	if got := p.servers(); !maps.Equal(got, want) {
		t.Errorf("servers are %v, not %v", got, want)
	}
	p.kill()
	p.start()
	testkit.Until(t, "HAProxy has its servers back", func() bool { return maps.Equal(p.servers(), want) })
}

// What an operator took off by hand stays off, as long as HAProxy lives and nobody ensures it.
func TestAKilledDriverDoesNotUndoWhatAnOperatorDid(t *testing.T) {
	p, d, want, address := stage(t)
	name := serverOf(address)
	d.end(syscall.SIGKILL)
	p.ask("set server web/" + name + " state maint; del server web/" + name)
	d.start()
	if got := p.servers()[name]; got != "" {
		t.Errorf("the server is back: %s", got)
	}
	d.ensure(address, webhook.Map{"weight": "2"})
	if got := p.servers(); !maps.Equal(got, want) {
		t.Errorf("servers are %v, not %v", got, want)
	}
}

func TestTheDriverEndsInGoodOrder(t *testing.T) {
	p, d, want, _ := stage(t)
	if code := d.end(syscall.SIGTERM); code != 0 {
		t.Errorf("its exit code is %d", code)
	}
	back(t, p, want)
	if s, err := os.Stat(d.state); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("its state: %v, %v", s.Mode(), err)
	}
}
