// SPDX-License-Identifier: Apache-2.0

//go:build linux

package prober

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/internal/testkit"
)

// patience is for what is to be answered; nobody waits for it.
const patience = testkit.Patience

// ask probes as the checker does.
func ask(t *testing.T, target health.Target) health.Result {
	t.Helper()
	if target.Timeout == 0 {
		target.Timeout = patience
	}
	ctx, cancel := context.WithTimeout(t.Context(), target.Timeout)
	defer cancel()
	return Prober{}.Probe(ctx, target)
}

func addressOf(t *testing.T, a net.Addr) netip.AddrPort {
	t.Helper()
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Balancing §14: statuses of HTTP that the policy expects count as an answer, redirections are not followed, and certificates are not
// verified.
// Rule: balancing §14.
func TestStatusesOfHTTP(t *testing.T) {
	seen := make(chan string, 100)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- fmt.Sprint(r.Method, " ", r.URL, " ", r.Host)
		switch r.URL.Path {
		case "/gone":
			http.Error(w, "gone", http.StatusGone)
		case "/away":
			http.Redirect(w, r, "/gone", http.StatusFound)
		case "/endless":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the body never ends; nobody reads it
		case "/large":
			for i := range 100 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
		}
	})
	plain, secure := httptest.NewServer(serve), httptest.NewTLSServer(serve)
	defer plain.Close()
	defer secure.Close()
	for _, c := range []struct {
		path, statuses string
		ok             bool
		why            string
	}{
		{"/", "", true, ""},
		{"/gone", "", false, "it answers 410"},
		{"/gone", "200,410", true, ""},
		{"/", "204", false, "it answers 200"},
		{"/away", "", true, ""},
		{"/away", "200", false, "it answers 302"},
		{"/endless", "", true, ""},
		{"/?ready=1", "", true, ""},
		{"/large", "", false, "exceeded"},
	} {
		for kind, server := range map[string]*httptest.Server{desired.ProbeHTTP: plain, desired.ProbeHTTPS: secure} {
			at := addressOf(t, server.Listener.Addr())
			r := ask(t, health.Target{Type: kind, At: at, Path: c.path, Statuses: c.statuses})
			if r.OK != c.ok || r.Void || !strings.Contains(r.Why, c.why) {
				t.Errorf("%s %s, expecting %q: %+v", kind, c.path, c.statuses, r)
			}
			if got, want := <-seen, "GET "+c.path+" "+at.String(); got != want {
				t.Errorf("the server saw %q, want %q", got, want)
			}
		}
	}
	if r := ask(t, health.Target{Type: desired.ProbeHTTPS, At: addressOf(t, plain.Listener.Addr()), Path: "/"}); r.OK || r.Void {
		t.Errorf("HTTPS of a server of HTTP: %+v", r)
	}
}

// Balancing §14: TCP by connection. Who refuses does not answer, nor does who says nothing within the timeout.
// Rule: balancing §14.
func TestConnectionsOfTCP(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		at := addressOf(t, l.Addr())
		if r := ask(t, health.Target{Type: desired.ProbeTCP, At: at}); !r.OK {
			t.Errorf("%s listens: %+v", at, r)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if r := ask(t, health.Target{Type: desired.ProbeTCP, At: at}); r.OK || r.Void || !strings.Contains(r.Why, "refused") {
			t.Errorf("%s listens no more: %+v", at, r)
		}
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := ask(t, health.Target{Type: desired.ProbeHTTP, At: addressOf(t, silent.Addr()), Path: "/", Timeout: 50 * time.Millisecond})
	if r.OK || r.Void || r.Why != "no answer within 50ms" {
		t.Errorf("silence: %+v", r)
	}
}

// A datagram is empty; an answer and silence are no failure, that nobody is there is one.
// Rule: balancing §14.
func TestDatagramsOfUDP(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		c, err := net.ListenPacket("udp", host)
		if err != nil {
			t.Fatal(err)
		}
		at := addressOf(t, c.LocalAddr())
		if r := ask(t, health.Target{Type: desired.ProbeUDP, At: at, Timeout: 50 * time.Millisecond}); !r.OK {
			t.Errorf("%s is silent: %+v", at, r)
		}
		b := make([]byte, 10)
		if n, _, err := c.ReadFrom(b); n != 0 || err != nil {
			t.Errorf("%s was sent %d bytes (%v)", at, n, err)
		}
		go func() {
			_, from, err := c.ReadFrom(b)
			if err == nil {
				_, _ = c.WriteTo([]byte("an answer"), from)
			}
		}()
		if r := ask(t, health.Target{Type: desired.ProbeUDP, At: at}); !r.OK {
			t.Errorf("%s answers: %+v", at, r)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if r := ask(t, health.Target{Type: desired.ProbeUDP, At: at}); r.OK || r.Void || !strings.Contains(r.Why, "refused") {
			t.Errorf("nobody is at %s: %+v", at, r)
		}
	}
}

// Balancing §14: ICMP echoes are answered by who is there; where this process may not send any, that says nothing of the address.
// Rule: balancing §14.
func TestEchoesOfICMP(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1"} {
		r := ask(t, health.Target{Type: desired.ProbeICMP, At: netip.AddrPortFrom(netip.MustParseAddr(address), 0)})
		if r.Void && strings.Contains(r.Why, "CAP_NET_RAW") && os.Getenv("FAIRLEAD_REQUIRE_ROOT") != "1" {
			t.Skip(r.Why)
		}
		if !r.OK {
			t.Errorf("%s: %+v", address, r)
		}
	}
}

// What this host cannot do says nothing of who is asked.
func TestWhatThisHostCannotDoIsVoid(t *testing.T) {
	for _, target := range []health.Target{
		{Type: "GRPC", At: netip.MustParseAddrPort("127.0.0.1:1")},
		{Type: desired.ProbeHTTP, At: netip.MustParseAddrPort("127.0.0.1:1"), Path: "//192.0.2.9/x"},
	} {
		if r := ask(t, target); !r.Void || r.OK {
			t.Errorf("%v: %+v", target, r)
		}
	}
}

// What an error says is told to members, who take nothing that is no text.
func TestReasonsAreCutBetweenCharacters(t *testing.T) {
	if got := why(fmt.Errorf("x%s", strings.Repeat("é", 200)), health.Target{}); got != "x"+strings.Repeat("é", 99) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
