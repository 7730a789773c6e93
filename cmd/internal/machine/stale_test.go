// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/internal/testkit"
)

// A connection to a member's Raft port, which the library reads from, ends when its certificate is revoked.
func TestRaftConnectionsEndWhenTheyAreRevoked(t *testing.T) {
	t.Parallel()
	ca := pkitest.New(t)
	files := ca.Issue(t, pki.Request{Role: pki.Member, Name: "m1"})
	var l Listeners
	for _, listener := range []*net.Listener{&l.API, &l.Raft} {
		var err error
		if *listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	self := func() pki.Membership { return pki.Membership{Group: "g1", Epoch: 1} }
	var asked, revoked atomic.Bool
	network, err := openNetwork(member.NetworkOptions{
		Config: config.Controller{Name: "m1", DataDir: t.TempDir(), TLS: config.MemberTLS{TLS: config.TLS(files)}, Advertise: config.Advertise{Raft: l.Raft.Addr().String()}},
		Self:   self, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Revoked: func(id pki.Identity, _ string, _ time.Time) string {
			why := ""
			if revoked.Load() && id.Name == "m2" {
				why = "revoked"
			}
			asked.Store(true) // the first one admits it, whatever comes now
			return why
		},
	}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Close)
	other := &pki.Endpoint{Source: ca.Source(t, pki.Request{Role: pki.Member, Name: "m2"}), Self: self}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	conn, err := other.Dial(ctx, (&net.Dialer{}).DialContext, pki.Raft, l.Raft.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	testkit.Until(t, "it is admitted", asked.Load)
	revoked.Store(true)
	testkit.Until(t, "the connection is ended", func() bool { return network.Endpoint.EndStale() == 1 })
	if err := conn.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it is open")
	}
	again, err := other.Dial(ctx, (&net.Dialer{}).DialContext, pki.Raft, l.Raft.Addr().String())
	if err == nil { // the refusal shows at the first read
		defer again.Close()
		if _, err = again.Read(make([]byte, 1)); err == nil {
			t.Error("it connects anew")
		}
	}
}
