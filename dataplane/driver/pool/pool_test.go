// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/pool"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// vault is what a cluster holds of Secrets.
type vault struct {
	mu   sync.Mutex
	data map[string]map[string][]byte
}

func (v *vault) read(_ context.Context, namespace, name string) (map[string][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if data, ok := v.data[namespace+"/"+name]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("Secret %s/%s: does not exist; create it", namespace, name)
}

func (v *vault) put(name string, data map[string][]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.data[name] = data
}

func newPool(t *testing.T, change func(*pool.Options)) (*pool.Pool, *prometheus.Registry) {
	t.Helper()
	began, registry, seed := time.Now(), prometheus.NewRegistry(), uint64(0)
	o := pool.Options{
		Now:    func() time.Duration { return time.Hour + time.Since(began) },
		Random: func() rand.Source { seed++; return rand.NewPCG(1, seed) },
		Check:  driver.Reach{Allowed: []driver.Place{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}.Check,
		Log:    slog.New(slog.DiscardHandler), Metrics: registry,
	}
	if change != nil {
		change(&o)
	}
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, registry
}

func get(t *testing.T, p *pool.Pool, s pool.Settings) *driver.Client {
	t.Helper()
	c, err := p.For(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// validate makes a call that changes nothing.
func validate(t *testing.T, c *driver.Client) (webhook.Verdict, *driver.Error) {
	t.Helper()
	v, err := c.ValidateLoadBalancer(t.Context(), driver.Call{}, webhook.ValidateLoadBalancerRequest{Operation: webhook.Create})
	var e *driver.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%T: %v", err, err)
	}
	return v, e
}

// serve answers every call, and tells of each request.
func serve(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(s.Close)
	return s
}

func TestAClientStaysAsLongAsItsSettings(t *testing.T) {
	p, _ := newPool(t, nil)
	s := pool.Settings{Name: "shop/d", URL: "http://192.0.2.7:80", Timeouts: map[webhook.Name]time.Duration{webhook.EnsureBackend: time.Second}}
	first := get(t, p, s)
	same := s
	same.Timeouts = map[webhook.Name]time.Duration{webhook.EnsureBackend: time.Second}
	if get(t, p, same) != first {
		t.Error("equal settings, another client: limits and circuit are not shared")
	}
	for name, change := range map[string]func(*pool.Settings){
		"name":    func(s *pool.Settings) { s.Name = "shop/e" },
		"url":     func(s *pool.Settings) { s.URL = "http://192.0.2.8:80" },
		"timeout": func(s *pool.Settings) { s.Timeouts = nil },
		"dry-run": func(s *pool.Settings) { s.AcceptsDryRun = true },
		"limit":   func(s *pool.Settings) { s.Concurrent = 3 },
		"secret":  func(s *pool.Settings) { s.Secret = "d" },
	} {
		t.Run(name, func(t *testing.T) {
			before, other := get(t, p, s), s
			change(&other)
			if get(t, p, other) == before {
				t.Error("other settings, the same client")
			}
		})
	}
	if c := get(t, p, s); c.Timeout(webhook.EnsureBackend) != time.Second {
		t.Errorf("timeout %v", c.Timeout(webhook.EnsureBackend))
	}
	s.URL = "ftp://192.0.2.7"
	if _, err := p.For(s); err == nil || !strings.Contains(err.Error(), "shop/d") {
		t.Errorf("no driver's URL: %v", err)
	}
}

// A driver is a tenant's: it sends members to other paths of its own, and nowhere else (lbcf §3.1).
func TestRedirectsStayWhereTheDriverIs(t *testing.T) {
	elsewhere := 0
	there := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere++ })
	to := there.URL
	here := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			fmt.Fprint(w, `{"succ":true}`)
			return
		}
		http.Redirect(w, r, to+"/v2"+r.URL.Path, http.StatusPermanentRedirect)
	})
	p, _ := newPool(t, nil)
	c := get(t, p, pool.Settings{Name: "shop/plain", URL: here.URL})
	if _, err := validate(t, c); err == nil || !strings.Contains(err.Error(), "another scheme, host or port") {
		t.Errorf("sent elsewhere: %v", err)
	}
	to = ""
	if v, err := validate(t, c); err != nil || !v.Succ || elsewhere != 0 {
		t.Errorf("%+v, %v, %d calls elsewhere", v, err, elsewhere)
	}
}

// Credentials are read by whoever is on the way of plain HTTP; within this machine nobody is.
func TestCredentialsAreShownByTLSOrToThisMachine(t *testing.T) {
	shown := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password == "hunter2" || r.Header.Get("Authorization") == "Bearer hunter2" {
			shown++
		}
		fmt.Fprint(w, `{"succ":true}`)
	})
	v := &vault{data: map[string]map[string][]byte{}}
	p, _ := newPool(t, func(o *pool.Options) {
		o.Secrets = v.read
		o.Check = func(context.Context, netip.AddrPort) error { return nil }
	})
	for i, secret := range []map[string][]byte{{"token": []byte("hunter2")}, {"username": []byte("u"), "password": []byte("hunter2")}} {
		v.put("shop/d", secret)
		if _, err := validate(t, get(t, p, pool.Settings{Name: "shop/d", URL: s.URL, Secret: "d"})); err != nil || shown != i+1 {
			t.Errorf("by loopback: %v, shown %d times", err, shown)
		}
		// Nothing listens there: that the address is what is refused tells that nobody dialled.
		_, err := validate(t, get(t, p, pool.Settings{Name: "shop/d", URL: "http://192.0.2.7:7490", Secret: "d"}))
		if err == nil || err.Sent || err.Cause != driver.CauseAddress || !strings.Contains(err.Error(), "write https://") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", slices.Collect(maps.Keys(secret)), err)
		}
	}
}

// What a pool is not told to allow it does not reach: neither by a number, nor by a name that resolves to it.
func TestDriversAreNotCalledWithinThisMachine(t *testing.T) {
	called := 0
	s := serve(t, func(http.ResponseWriter, *http.Request) { called++ })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newPool(t, func(o *pool.Options) { o.Check = nil })
	for i, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "127.1.2.3", "[::ffff:127.0.0.1]", "[::1]", "[::]", "169.254.169.254"} {
		c := get(t, p, pool.Settings{Name: fmt.Sprintf("shop/d%d", i), URL: "http://" + host + ":" + port})
		for range 10 { // of a driver that is left alone nobody would hear why
			_, err := validate(t, c)
			if err == nil || err.Sent || err.Cause != driver.CauseAddress || !strings.Contains(err.Error(), "drivers.allowed of controller.yaml") {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	if called != 0 {
		t.Errorf("called %d times", called)
	}
}

func TestCredentialsCountFromTheNextCallOnAndAreNowhereElse(t *testing.T) {
	var shown []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"succ":true}`)
	})
	v := &vault{data: map[string]map[string][]byte{}}
	p, _ := newPool(t, func(o *pool.Options) { o.Secrets = v.read })
	c := get(t, p, pool.Settings{Name: "shop/d", URL: s.URL, Secret: "d"})
	_, err := validate(t, c)
	if err == nil || err.Sent || err.Cause != driver.CauseConnect || !strings.Contains(err.Error(), "shop/d: does not exist") || len(shown) != 0 {
		t.Fatalf("without the Secret: %v, sent %q", err, shown)
	}
	v.put("shop/d", map[string][]byte{"token": []byte("hunter2\n")})
	if _, err := validate(t, c); err != nil || shown[0] != "Bearer hunter2" {
		t.Errorf("%v, shown %q", err, shown)
	}
	v.put("shop/d", map[string][]byte{"token": []byte("hunter3")})
	if _, err := validate(t, c); err != nil || shown[1] != "Bearer hunter3" {
		t.Errorf("%v, shown %q", err, shown)
	}
	v.put("shop/d", map[string][]byte{"ca.crt": []byte("hunter4")})
	if _, err := validate(t, c); err == nil || err.Sent || !strings.Contains(err.Error(), "Secret d") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("no certificate in ca.crt: %v", err)
	}
	none, _ := newPool(t, nil)
	if _, err := validate(t, get(t, none, pool.Settings{Name: "shop/d", URL: s.URL, Secret: "d"})); err == nil || err.Sent {
		t.Errorf("where no Secrets are read: %v", err)
	}
}

// A CA from a Secret: the driver's certificate is known by it, and by nothing else.
func TestADriverIsKnownByTheCAOfItsSecret(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"succ":true}`) }))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	defer s.Close()
	v := &vault{data: map[string]map[string][]byte{"shop/d": {"ca.crt": pemOf(s.Certificate().Raw)}}}
	p, _ := newPool(t, func(o *pool.Options) { o.Secrets = v.read })
	if _, err := validate(t, get(t, p, pool.Settings{Name: "shop/d", URL: s.URL, Secret: "d"})); err != nil {
		t.Error(err)
	}
	if _, err := validate(t, get(t, p, pool.Settings{Name: "shop/e", URL: s.URL})); err == nil || err.Sent {
		t.Errorf("without its CA: %v", err)
	}
}

// lbcf §8: what LBCF's metrics count, and what they do not.
func TestCallsAreCountedAsLBCFCountedThem(t *testing.T) {
	body, status := "", 200
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); fmt.Fprint(w, body) })
	p, registry := newPool(t, nil)
	c := get(t, p, pool.Settings{Name: "shop/d", URL: s.URL})
	ensure := func(code int, answer string) {
		status, body = code, answer
		_, _ = c.EnsureBackend(t.Context(), driver.Call{}, webhook.BackendRequest{})
	}
	ensure(200, `{"status":"Succ"}`)
	ensure(200, `{"status":"Fail"}`)
	ensure(200, `{"status":"Running"}`)
	ensure(200, `{"status":"nonsense"}`) // invalid values count nowhere
	ensure(500, ``)
	ensure(200, `[]`)
	_, _ = c.EnsureBackend(t.Context(), driver.Call{DryRun: true}, webhook.BackendRequest{}) // not accepted: no call
	want := `
# HELP webhook_calls Calls to drivers.
# TYPE webhook_calls counter
webhook_calls{driver_name="shop/d",webhook_name="ensureBackend"} 6
# HELP webhook_errors Calls to drivers without a usable answer.
# TYPE webhook_errors counter
webhook_errors{driver_name="shop/d",webhook_name="ensureBackend"} 2
# HELP webhook_fails Calls to drivers that they answered with no.
# TYPE webhook_fails counter
webhook_fails{driver_name="shop/d",webhook_name="ensureBackend"} 1
# HELP fairlead_driver_calls_total Calls to drivers, by how they ended.
# TYPE fairlead_driver_calls_total counter
fairlead_driver_calls_total{driver="shop/d",result="body",webhook="ensureBackend"} 1
fairlead_driver_calls_total{driver="shop/d",result="dry-run",webhook="ensureBackend"} 1
fairlead_driver_calls_total{driver="shop/d",result="invalid",webhook="ensureBackend"} 1
fairlead_driver_calls_total{driver="shop/d",result="ok",webhook="ensureBackend"} 2
fairlead_driver_calls_total{driver="shop/d",result="refused",webhook="ensureBackend"} 1
fairlead_driver_calls_total{driver="shop/d",result="status",webhook="ensureBackend"} 1
`
	names := []string{"webhook_calls", "webhook_errors", "webhook_fails", "fairlead_driver_calls_total"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "webhook_latency" {
			h := f.GetMetric()[0].GetHistogram()
			if bs := h.GetBucket(); h.GetSampleCount() != 4 || len(bs) != 24 || bs[0].GetUpperBound() != 0.02 || bs[23].GetUpperBound() != 60 {
				t.Errorf("latency: %v", h)
			}
		}
	}
	p.Forget("shop/d")
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 0 {
		t.Errorf("%d metrics of a driver that is gone, %v", n, err)
	}
}

// A cluster that makes drivers without end does not fill the memory of members.
func TestDriversOfLongAgoAreForgotten(t *testing.T) {
	p, _ := newPool(t, nil)
	settings := func(i int) pool.Settings {
		return pool.Settings{Name: fmt.Sprintf("shop/d%d", i), URL: "http://192.0.2.7:80"}
	}
	first, second := get(t, p, settings(0)), get(t, p, settings(1))
	for i := 2; i <= 256; i++ {
		get(t, p, settings(0)) // asked for all along
		get(t, p, settings(i))
	}
	if get(t, p, settings(0)) != first {
		t.Error("the one that is used was forgotten")
	}
	if get(t, p, settings(1)) == second {
		t.Error("the one that nobody asked for is kept")
	}
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
