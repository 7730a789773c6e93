// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
)

// Where metrics have a port of their own, a member shows there by TLS what it is, and nothing to who does without.
func TestMetricsOfTheirOwnPortAreByTLS(t *testing.T) {
	ca := pkitest.New(t)
	files := ca.Issue(t, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"127.0.0.1"}})
	var l Listeners
	for _, listener := range []*net.Listener{&l.API, &l.Raft, &l.metrics} {
		var err error
		if *listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	at := l.metrics.Addr().String()
	network, err := openNetwork(member.NetworkOptions{
		Config: config.Controller{Name: "m1", DataDir: t.TempDir(), TLS: config.MemberTLS{TLS: config.TLS(files)}, Advertise: config.Advertise{Raft: l.Raft.Addr().String()}},
		Self:   func() pki.Membership { return pki.Membership{} }, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- network.ServeMetrics(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		network.Close()
	})
	roots, err := pki.ReadRoots(ca.Cert())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	for url, want := range map[string]string{"https://" + at + "/metrics": "metrics", "http://" + at + "/metrics": ""} {
		got := ""
		if answer, err := client.Get(url); err == nil {
			if body, err := io.ReadAll(answer.Body); err == nil && answer.StatusCode == http.StatusOK {
				got = string(body)
			}
			answer.Body.Close()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
