// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/lab"
)

// perDriver is how many load balancers somebody asks for of each driver that means harm.
const perDriver = 5

// drivers are what tenants name as drivers of load balancers, each by the first part of its path.
type drivers struct {
	mu    sync.Mutex
	calls map[string]int
	evil  map[string]http.HandlerFunc
}

// ServeHTTP implements http.Handler. Who means no harm does what it is asked to.
func (d *drivers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, call, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	d.mu.Lock()
	d.calls[name]++
	d.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body) // so that it hears when its caller goes
	if does := d.evil[name]; does != nil {
		does(w, r)
		return
	}
	answer := map[string]any{"status": "Succ"}
	if call == string(webhook.GenerateBackendAddr) {
		answer["backendAddr"] = "198.51.100.1:80"
	}
	_ = json.NewEncoder(w).Encode(answer) // whoever asked may have gone
}

func (d *drivers) of(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[name]
}

// raw answers on the bare connection.
func raw(says func(io.Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err) // it is HTTP/1.1
		}
		defer conn.Close()
		_ = says(conn) // until its caller goes
	}
}

// endless writes something again and again.
func endless(text string, pause time.Duration) func(io.Writer) error {
	return func(w io.Writer) error {
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			time.Sleep(pause)
		}
	}
}

// after writes something else first.
func after(first string, then func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		if _, err := io.WriteString(w, first); err != nil {
			return err
		}
		return then(w)
	}
}

// bomb is a gigabyte, compressed to a megabyte.
func bomb(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	_, err := io.WriteString(z, `{"status":"Succ","msg":"`)
	for i := 0; i < 1<<10 && err == nil; i++ {
		_, err = z.Write(zeros)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// evils are the ways in which a driver can mean harm. elsewhere are where nobody may be asked.
func evils(t *testing.T, elsewhere []string) map[string]http.HandlerFunc {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	all := map[string]http.HandlerFunc{
		"to-itself": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		"endless":    raw(after(head+"\r\n"+`{"status":"Succ","msg":"`, endless(strings.Repeat("x", 1<<20), 0))),
		"slow":       raw(after(head+"\r\n", endless(" ", 200*time.Millisecond))),
		"slow-head":  raw(after("HTTP/1.1 200 OK\r\n", endless("X: y\r\n", 200*time.Millisecond))),
		"bomb":       raw(after(head+"Content-Encoding: gzip\r\n\r\n", func(w io.Writer) error { _, err := io.WriteString(w, bomb(t)); return err })),
		"headers":    raw(after("HTTP/1.1 200 OK\r\n", endless("X: "+strings.Repeat("y", 1<<10)+"\r\n", 0))),
		"one-header": raw(after("HTTP/1.1 200 OK\r\nX: ", endless(strings.Repeat("y", 1<<20), 0))),
		"early":      raw(endless("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0)),
		"continue":   raw(endless("HTTP/1.1 100 Continue\r\n\r\n", 0)),
		"chunks":     raw(after(head+"Transfer-Encoding: chunked\r\n\r\n", endless("1;"+strings.Repeat("x", 1<<10)+"\r\nx\r\n", 0))),
		"text": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"Fail","msg":"`+strings.Repeat("\xff\xfe\\u0000\x1b[2J", 1000)+`"}`)
		},
	}
	for i, to := range elsewhere {
		for _, status := range []int{http.StatusFound, http.StatusPermanentRedirect} {
			all[fmt.Sprintf("to-%d-%d", i, status)] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }
		}
	}
	return all
}

// driver is a driver, and load balancers of it with a backend each.
func (d *drivers) driver(l *lab.Lab, url, name string, balancers int) {
	var text strings.Builder
	fmt.Fprintf(&text, `
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: %[1]s, namespace: shop}
spec:
  driverType: Webhook
  url: %[2]s/%[1]s
  webhooks: [{name: createLoadBalancer, timeout: 10s}, {name: generateBackendAddr, timeout: 10s}, {name: ensureBackend, timeout: 10s}]
`, name, url)
	for i := range balancers {
		fmt.Fprintf(&text, `---
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: %[1]s-%[2]d, namespace: shop}
spec: {lbDriver: %[1]s, lbSpec: {id: %[1]s-%[2]d}}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: %[1]s-%[2]d, namespace: shop}
spec:
  loadBalancers: [%[1]s-%[2]d]
  static: ["198.51.100.%[3]d:80"]
`, name, i, 1+i)
	}
	l.Manifests.Put("driver-"+name+".yaml", text.String())
}

// Whoever may name drivers of load balancers, and has them answer with redirects to where nobody may be asked, without an end, in ever smaller
// pieces or with what is a thousand times as long as it looks, costs the group nothing: no leader, no route, no answer, no memory beyond a bound and
// no flood of lines. Drivers that mean well are asked meanwhile.
func TestDriversThatMeanHarmHurtNobody(t *testing.T) {
	const at, metadata = "127.0.0.1", "169.254.169.254" // drivers of tests may be at the first
	l := started(t, lab.Options{Log: "info"})
	l.AddAddress(netip.MustParseAddr(metadata))
	var elsewhere []string
	for _, host := range []string{"127.0.0.99", metadata} { // whom members are not to ask
		listener, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		forbidden := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for %s", host, r.URL) }))
		_ = forbidden.Listener.Close()
		forbidden.Listener = listener
		forbidden.Start()
		t.Cleanup(forbidden.Close)
		elsewhere = append(elsewhere, forbidden.URL)
	}
	d := &drivers{calls: map[string]int{}, evil: evils(t, elsewhere)}
	listener, err := net.Listen("tcp", at+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(d)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	l.Agreed()
	before, missing := standing(t, l), l.NeverMissing(prefix(0))
	for name := range d.evil {
		d.driver(l, server.URL, name, perDriver)
	}
	l.Eventually("all drivers to be asked", func() error {
		for name := range d.evil {
			if d.of(name) == 0 {
				return fmt.Errorf("%s was not", name)
			}
		}
		return nil
	})
	watched, most := watch(t, l), 0
	for i, until := 1, time.Now().Add(attackFor(t, 5*time.Second)); i <= 5 || time.Now().Before(until); i++ {
		l.Manifests.Service(1, 1+i%3)
		l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(1+i%3))
		well := fmt.Sprintf("well-%d", i)
		d.driver(l, server.URL, well, 1)
		l.Eventually(well+" to be asked to create and to bind", func() error {
			if n := d.of(well); n < 2 {
				return fmt.Errorf("it was asked %d times", n)
			}
			return nil
		})
		for _, m := range l.Members {
			n, err := m.Memory()
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		time.Sleep(time.Second)
	}
	watched.judge(before)
	if most > mostMemory {
		t.Errorf("a member had %d MiB", most>>20)
	}
	t.Logf("at most %d MiB; calls: %v", most>>20, d.calls)
	missing()
	l.Agreed()
}
