// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
)

// crowd is agents that come by one address, all connected before the first of them says anything, and how many of them are served.
type crowd struct {
	ctx       context.Context
	connected sync.WaitGroup
	served    atomic.Int32
}

// dial connects, for the first time together with all others.
func (c *crowd) dial() pki.DialFunc {
	var first sync.Once
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		first.Do(func() { c.connected.Done(); c.connected.Wait() })
		return conn, err
	}
}

// follow has an agent try until it is served, with the pauses that an agent makes.
func (c *crowd) follow(client *admin.Client, node string) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		stream, err := client.Agent.Sync(c.ctx, &fairleadv1.SyncRequest{Node: node})
		if err == nil && stream.Receive() {
			c.served.Add(1)
			return
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return
		}
	}
}

// Agents behind one address of which nobody has heard, many times as many as it has places for strangers, come at the same moment, and
// each is served: whoever proved who he is takes no place of a source's.
func TestAgentsBehindOneAddressAreServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const names, each = 10, 30
	c := &crowd{ctx: w.ctx()}
	c.connected.Add(names * each)
	var all sync.WaitGroup
	for i := range names {
		node := fmt.Sprintf("n%d", i)
		endpoint := w.endpoint(pki.Request{Role: pki.Agent, Name: node})
		for range each {
			client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{w.member("m1").address}, Dial: c.dial()})
			t.Cleanup(client.Close)
			all.Go(func() { c.follow(client, node) })
		}
	}
	all.Wait()
	served, open := c.served.Load(), w.member("m1").counter(t, "fairlead_connections", "api", "known")
	if served != names*each || open < names*each {
		t.Errorf("%d of %d agents were served, and %v are", served, names*each, open)
	}
	if n := w.member("m1").counter(t, "fairlead_connections_closed_total"); n == 0 {
		t.Error("there was no crowd")
	}
}

// Who has no certificate leaves the places of strangers, too, once his handshake is done, for those of guests.
func TestWhoEnrolsIsAGuest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.member("m1")
	m.endpoint.Enrols = true
	roots, err := pki.ReadRoots(w.ca.Cert())
	if err != nil {
		t.Fatal(err)
	}
	config, err := (&pki.Endpoint{Roots: roots}).Client(pki.API, m.address)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("https://" + m.address + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if guests, others := m.counter(t, "fairlead_connections", "api", "guest"), m.counter(t, "fairlead_connections", "api"); guests != 1 || others != 1 {
		t.Errorf("%v of %v connections are guests", guests, others)
	}
}
