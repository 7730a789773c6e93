// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
)

// pod is an HTTP server that answers its name. Requests for /slow wait until they are let go.
type pod struct {
	name    string
	address string
	arrived chan struct{}
	letGo   chan struct{}
}

func startPod(t testing.TB, name string) *pod {
	t.Helper()
	p := &pod{name: name, arrived: make(chan struct{}, 8), letGo: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			p.arrived <- struct{}{}
			select {
			case <-p.letGo:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(server.CloseClientConnections) // before Close, which waits for them
	t.Cleanup(server.Close)
	p.address = strings.TrimPrefix(server.URL, "http://")
	return p
}

// await waits until a request for /slow has arrived.
func (p *pod) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.arrived:
	case <-time.After(testkit.Patience):
		t.Fatalf("no request reaches %s", p.name)
	}
}

// get makes a request from a new connection, and gives who answered.
func get(url string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err.Error()
	case response.StatusCode != http.StatusOK:
		return response.Status
	}
	return string(text)
}

// answering makes requests, and looks who answers how many of them.
func answering(t *testing.T, url string, shares map[string]int) {
	t.Helper()
	n, got := 0, map[string]int{}
	for _, share := range shares {
		n += share
	}
	for range n {
		got[get(url)]++
	}
	// After a change HAProxy may be anywhere in its round.
	const slack = 3
	for name := range got {
		if diff := got[name] - shares[name]; shares[name] == 0 || diff > slack || diff < -slack {
			t.Errorf("answers came from %v, should have from %v", got, shares)
			return
		}
	}
	if len(got) != len(shares) {
		t.Errorf("answers came from %v, should have from %v", got, shares)
	}
}
