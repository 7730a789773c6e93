// SPDX-License-Identifier: Apache-2.0

package grouptest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/freeport"
)

// Patience is how long a condition may take before a test gives up. It costs time only when something is wrong.
const Patience = 2 * time.Minute

// World is a CA and what it certifies.
type World struct{ ca pkitest.CA }

// NewWorld makes a CA.
func NewWorld(t testing.TB) *World {
	t.Helper()
	return &World{pkitest.New(t)}
}

// CA is the CA.
func (w *World) CA() pkitest.CA { return w.ca }

// Source issues a certificate; members answer on loopback.
func (w *World) Source(t testing.TB, role pki.Role, name string) *pki.Source {
	t.Helper()
	return w.ca.Source(t, pki.Request{Role: role, Name: name})
}

// Mount is what a server offers, as admin.Server.Mount takes it.
type Mount func(...connect.HandlerOption) (string, http.Handler)

// API is a running API server of a member of the group "g1".
type API struct {
	Address string
	stop    context.CancelFunc
	done    chan struct{}
}

// Serve starts a member's API. It ends with the test, or by Stop.
func (w *World) Serve(t testing.TB, member string, mounts ...Mount) *API {
	t.Helper()
	return w.ServeAt(t, "", member, mounts...)
}

// ServeAt is Serve at an address that an API had which was stopped; "" chooses one.
func (w *World) ServeAt(t testing.TB, address, member string, mounts ...Mount) *API {
	t.Helper()
	log, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	refusals, err := pki.NewRefusals(log, registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := admin.NewServer(admin.ServerOptions{
		Endpoint: &pki.Endpoint{Source: w.Source(t, pki.Member, member), Self: belongs, Refusals: refusals, Enrols: true},
		Log:      log, Metrics: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range mounts {
		server.Mount(mount)
	}
	listener, err := listen(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	api := &API{Address: listener.Addr().String(), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(api.done)
		if err := server.Serve(ctx, listener); err != nil {
			t.Errorf("serve the API of %s: %v", member, err)
		}
	}()
	t.Cleanup(api.Stop)
	return api
}

func listen(address string) (net.Listener, error) {
	if address == "" {
		return freeport.Listen(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return net.Listen("tcp", address)
}

// Stop ends the server and waits for it.
func (a *API) Stop() {
	a.stop()
	<-a.done
}

func belongs() pki.Membership { return pki.Membership{Group: "g1", Epoch: 1} }

// Client makes a client of one role for the API at an address. Members name their group.
func (w *World) Client(t testing.TB, role pki.Role, name, address string) *admin.Client {
	t.Helper()
	endpoint := &pki.Endpoint{Source: w.Source(t, role, name)}
	if role == pki.Member {
		endpoint.Self = belongs
	}
	client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{address}})
	t.Cleanup(client.Close)
	return client
}
