// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/testkit"
)

// restartable is a server at an address of its own that can be away.
type restartable struct {
	t       *testing.T
	address string
	server  *http.Server
}

// unused is an address that nobody listens at, nor connects from.
func unused(t *testing.T) string {
	t.Helper()
	loopback := netip.MustParseAddr("127.0.0.1")
	port, err := freeport.Draw(loopback)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(loopback, port).String()
}

func (r *restartable) start() {
	r.t.Helper()
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "checked") })}
	server := r.server
	r.t.Cleanup(func() { server.Close() })
	go func() { _ = server.Serve(listener) }()
}

// status is what HAProxy's statistics say of a server of "web".
func (p *proxy) status(server string) string {
	p.t.Helper()
	for _, line := range strings.Split(p.ask("show stat"), "\n") {
		if f := strings.Split(line, ","); len(f) > 17 && f[0] == "web" && f[1] == server {
			return f[17]
		}
	}
	return ""
}

// A bound server whose health is checked gets requests while it answers, also after HAProxy was reloaded. Once checks are no
// longer asked for it gets them whatever it does.
func TestHealthOfBoundServersIsChecked(t *testing.T) {
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	r := &restartable{t: t, address: unused(t)}
	r.start()
	is := func(what, want string) {
		t.Helper()
		testkit.Until(t, what, func() bool { return strings.HasPrefix(p.status(serverOf(r.address)), want) })
	}
	d.ensure(r.address, nil)
	is("nobody checks it", "no check")
	d.ensure(r.address, webhook.Map{"check": "true", "interval": "100ms"}) // it has no connections
	is("it answers", "UP")
	answering(t, p.url, map[string]int{"static": 5, "checked": 5})
	r.server.Close()
	is("it does not answer", "DOWN")
	answering(t, p.url, map[string]int{"static": 10})
	d.ensure(r.address, webhook.Map{"check": "true", "interval": "100ms", "weight": "3"})
	if got := p.status(serverOf(r.address)); got != "DOWN" {
		t.Errorf("a new weight made it %s", got)
	}
	p.reload()
	is("it does not answer after a reload", "DOWN")
	r.start()
	is("it answers again", "UP")
	r.server.Close()
	is("it is away again", "DOWN")
	d.ensure(r.address, nil)
	is("nobody checks it any more", "no check")
}

// What HAProxy can change only by deleting the server waits until it has no connections, and users hear so.
func TestHealthChecksDoNotChangeUnderConnections(t *testing.T) {
	a := startPod(t, "a")
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	d.ensure(a.address, nil)
	answer := slow(t, p, a)
	r := about(a.address, webhook.Map{"check": "true"})
	got, err := d.client.EnsureBackend(t.Context(), d.call(), r)
	if err != nil || got.Status != webhook.Fail || !strings.Contains(got.Msg, "only while it has no connections") {
		t.Errorf("with a request under way: %+v, %v", got, err)
	}
	answering(t, p.url, map[string]int{"static": 5, "a": 5})
	a.letGo <- struct{}{}
	if got := <-answer; got != "a" {
		t.Errorf("the request that was under way got %q", got)
	}
	testkit.Until(t, "it is checked", func() bool {
		got, err := d.client.EnsureBackend(t.Context(), d.call(), r)
		return err == nil && got.Status == webhook.Succ && p.status(serverOf(a.address)) == "UP"
	})
}
