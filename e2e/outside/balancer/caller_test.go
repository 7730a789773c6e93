// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/testkit"
)

// A call beside another about the same backend breaks a rule, and one that comes once the other's caller has closed does
// not, however soon.
func TestOverlapIsNotedWhileACallerWaits(t *testing.T) {
	for name, test := range map[string]struct {
		closes bool
		broken int
	}{"waits": {false, 1}, "closed": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				b := Start(t)
				hang := make(chan struct{}, 1)
				b.Late(0)
				b.Faults(func(c Call) Fault {
					if c.Number == 1 {
						hang <- struct{}{}
						return Hang
					}
					return None
				})
				first := open(t, b)
				send(t, first)
				<-hang
				if test.closes {
					first.Close()
				}
				ensure(t, b)
				first.Close()
				if got := b.Broken(); len(got) != test.broken {
					t.Fatalf("rules broken: %q, not %d", got, test.broken)
				}
			}
		})
	}
}

const request = `{"recordID": "r(1)", "retryID": "1", "lbInfo": {"id": "edge"}, "backendAddr": "192.0.2.1:80", "parameters": {}}`

func open(t *testing.T, b *Balancer) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, c net.Conn) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+c.RemoteAddr().String()+"/"+string(webhook.EnsureBackend), strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if err := r.Write(c); err != nil {
		t.Fatal(err)
	}
}

func ensure(t *testing.T, b *Balancer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+"/"+string(webhook.EnsureBackend), strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || !strings.Contains(string(body), "Succ") {
		t.Fatalf("%s: %s", answer.Status, body)
	}
}
