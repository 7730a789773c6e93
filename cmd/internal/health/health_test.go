// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/testkit"
)

// served runs the pages of a process at a port of loopback.
func served(t *testing.T) (address string, registry *prometheus.Registry) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry = prometheus.NewRegistry()
	counts, err := NewCounts(registry)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, listener, Handler(registry, Checks{Alive: Alive, Healthy: Alive, Ready: Alive}), counts)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), registry
}

// Whoever holds connections open, with or without a request, keeps nobody from an answer.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	address, registry := served(t)
	for i := range 2 * limits().Strangers.PerKey {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if i%2 == 0 {
			if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := &http.Client{Timeout: testkit.Patience}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || string(body) != "ok\n" {
		t.Errorf("%d %q, %v", answer.StatusCode, body, err)
	}
	page := httptest.NewRecorder()
	Metrics(registry).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	const ended = `fairlead_connections_closed_total{port="health",reason="source-limit"} `
	if _, n, there := strings.Cut(page.Body.String(), ended); !there || strings.HasPrefix(n, "0\n") {
		t.Errorf("all of them are open still, or nobody says: %.20q", n)
	}
}

func TestMetricsAreWholeAndOfTheirType(t *testing.T) {
	address, registry := served(t)
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "a_gauge", Help: "Of a test."}, func() float64 { return 7 }))
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), "a_gauge 7\n") || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%v %s: %s", err, answer.Header, body)
	}
}

// stuck is a reader that takes nothing of what it asked for.
type stuck struct {
	http.ResponseWriter
	begun, end chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	close(s.begun)
	<-s.end
	return s.ResponseWriter.Write(p)
}

// Who does not read holds up nobody else, and however many ask, one answer is made at a time.
func TestSlowReadersOfMetricsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		making, made, most := 0, 0, 0
		var mu sync.Mutex
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			making += by
			most = max(most, making)
			if by < 0 {
				made++
			}
		}
		p := newPage(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			count(1)
			defer count(-1)
			time.Sleep(time.Second)
			fmt.Fprint(w, "metrics")
		}))
		slow := stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		ended := make(chan struct{})
		ask := func(w http.ResponseWriter, r *http.Request) { p.ServeHTTP(w, r); ended <- struct{}{} }
		go ask(slow, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		<-slow.begun
		const others = 20
		for range others {
			go ask(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		answer := httptest.NewRecorder()
		p.ServeHTTP(answer, httptest.NewRequestWithContext(gone, http.MethodGet, "/metrics", nil)) // while one is made
		for range others {
			<-ended
		}
		if made != others+1 || most != 1 || answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%d answers were made for %d, %d at once; who was gone got %d", made, others+1, most, answer.Code)
		}
		close(slow.end)
		<-ended
		if slow.ResponseWriter.(*httptest.ResponseRecorder).Body.String() != "metrics" {
			t.Error("the slow one did not get it all")
		}
	})
}

// accepts is a listener to which a test hands connections.
type accepts struct {
	net.Listener
	conns chan net.Conn
}

func (a accepts) Accept() (net.Conn, error) {
	if c, open := <-a.conns; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (a accepts) Close() error   { return nil }
func (a accepts) Addr() net.Addr { return &net.TCPAddr{} }

// taker reads what a server sends.
type taker func(io.Reader)

func nothing(io.Reader) {}
func all(r io.Reader)   { _, _ = io.Copy(io.Discard, r) }

// sip takes a kilobyte a second.
func sip(r io.Reader) {
	for {
		if _, err := io.CopyN(io.Discard, r, 1<<10); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// Whoever sends half a request, does not take his answer, or asks for nothing more, is let go after a time, and not before.
func TestConnectionsThatDoNothingEnd(t *testing.T) {
	const whole = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
	long := func() error { return errors.New(strings.Repeat("x", 64<<10)) }
	for name, c := range map[string]struct {
		says   []string // a second apart
		reads  taker
		within time.Duration // since the last whole request, or from the start
	}{
		"half-a-request":     {[]string{"GET /livez HTTP/1.1\r\n"}, all, exchangeWithin},
		"a-byte-at-a-time":   {strings.Split("GET /livez HTTP/1.1", ""), all, exchangeWithin},
		"takes-no-answer":    {[]string{whole}, nothing, writeWithin},
		"takes-it-slowly":    {[]string{whole}, sip, writeWithin},
		"asks-nothing-more":  {[]string{whole}, all, idleWithin},
		"asks-again-in-time": {[]string{whole, whole, whole}, all, idleWithin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := accepts{conns: make(chan net.Conn)}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- Serve(ctx, listener, Handler(nil, Checks{Alive: Alive, Healthy: Alive, Ready: long}), Counts{})
				}()
				ours, theirs := net.Pipe()
				gone := &closing{Conn: theirs, closed: make(chan struct{})}
				listener.conns <- gone
				var reading sync.WaitGroup
				reading.Go(func() { c.reads(ours) })
				begin := time.Now()
				for i, text := range c.says {
					if i > 0 {
						time.Sleep(time.Second)
					}
					if _, err := io.WriteString(ours, text); err != nil {
						break // it was ended
					}
					if text == whole {
						begin = time.Now()
					}
				}
				<-gone.closed
				if took := time.Since(begin); took < c.within || took > c.within+time.Second {
					t.Errorf("it was let go after %v", took)
				}
				stop()
				close(listener.conns)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				_ = ours.Close()
				reading.Wait()
			})
		})
	}
}

// closing tells when a server closes a connection.
type closing struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
