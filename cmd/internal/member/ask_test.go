// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/cmd/internal/member/drivers"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/pool"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// hook is a driver that keeps what it is asked.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	asked  map[string]string // the last body, by webhook
	answer string
}

func newHook(t *testing.T) *hook {
	h := &hook{asked: map[string]string{}, answer: `{"succ":true}`}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked[path.Base(r.URL.Path)] = string(body)
		fmt.Fprint(w, h.answer)
	}))
	t.Cleanup(h.Close)
	return h
}

// beside is where drivers of tests are.
var beside = driver.Reach{Allowed: []driver.Place{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}

func clients(t *testing.T) *pool.Pool {
	t.Helper()
	began := time.Now()
	p, err := pool.New(pool.Options{
		Now: func() time.Duration { return time.Hour + time.Since(began) }, Random: (&dice{random: rand.New(rand.NewPCG(1, 2))}).source, Log: slog.New(slog.DiscardHandler),
		Check: beside.Check, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// asking asks drivers that the record does not know.
func asking(p *pool.Pool) func(context.Context, admission.Call) admission.Answer {
	return (&Member{drivers: p, state: fsm.New()}).ask
}

func driverAt(url string) *v1beta1.LoadBalancerDriver {
	return &v1beta1.LoadBalancerDriver{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "clb"},
		Spec:       v1beta1.LoadBalancerDriverSpec{DriverType: v1beta1.DriverTypeWebhook, URL: url, AcceptDryRunCall: true},
	}
}

// lbcf §3.4, §3.8 [KEEP+]: what is asked arrives word for word, former parameters by both names.
func TestDriversAreAskedInLBCFsWords(t *testing.T) {
	h := newHook(t)
	asks := asking(clients(t))
	for _, c := range []struct {
		what, webhook, want string
		call                admission.Call
	}{
		{"a load balancer", "validateLoadBalancer",
			`{"dryRun":false,"operation":"Update","lbSpec":{"vip":"198.51.100.20","port":"443"},"attributes":{"algo":"maglev"},"oldAttributes":{"algo":"rr"}}`,
			admission.Call{LoadBalancer: &admission.LoadBalancerQuestion{
				Operation: admission.OperationUpdate, LBSpec: map[string]string{"vip": "198.51.100.20", "port": "443"},
				Attributes: map[string]string{"algo": "maglev"}, OldAttributes: map[string]string{"algo": "rr"},
			}}},
		{"a new load balancer", "validateLoadBalancer", `{"dryRun":true,"operation":"Create","lbSpec":{"pool":"dmz"},"attributes":null}`,
			admission.Call{DryRun: true, LoadBalancer: &admission.LoadBalancerQuestion{Operation: admission.OperationCreate, LBSpec: map[string]string{"pool": "dmz"}}}},
		{"backends", "validateBackend",
			`{"dryRun":false,"backendType":"Pod","operation":"Update","lbInfo":{"vip":"198.51.100.20","port":"443"},"parameters":{"weight":"80"},"OldParameters":{"weight":"100"},"oldParameters":{"weight":"100"}}`,
			admission.Call{Backend: &admission.BackendQuestion{
				Operation: admission.OperationUpdate, BackendType: "Pod", LBInfo: map[string]string{"vip": "198.51.100.20", "port": "443"},
				Parameters: map[string]string{"weight": "80"}, OldParameters: map[string]string{"weight": "100"},
			}}},
		{"new backends", "validateBackend", `{"dryRun":true,"backendType":"Static","operation":"Create","lbInfo":null,"parameters":null}`,
			admission.Call{DryRun: true, Backend: &admission.BackendQuestion{Operation: admission.OperationCreate, BackendType: "Static"}}},
	} {
		c.call.Driver = driverAt(h.URL)
		if a := asks(t.Context(), c.call); a.Err != nil || !a.Succ {
			t.Errorf("%s: %+v", c.what, a)
		}
		if !sameJSON(t, h.asked[c.webhook], c.want) {
			t.Errorf("%s: asked\n%s, not\n%s", c.what, h.asked[c.webhook], c.want)
		}
	}
	h.answer = `{"succ":false,"msg":"port 443 belongs to tenant blue"}`
	if a := asks(t.Context(), admission.Call{Driver: driverAt(h.URL), Backend: &admission.BackendQuestion{}}); a.Err != nil || a.Succ || a.Msg != "port 443 belongs to tenant blue" {
		t.Errorf("%+v", a)
	}
	if a := asks(t.Context(), admission.Call{Driver: driverAt("ftp://192.0.2.7"), Backend: &admission.BackendQuestion{}}); a.Err == nil {
		t.Error("a driver at no URL answered")
	}
}

// sameJSON tells whether two texts are the same, the order of keys aside. Names of keys count to the letter.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var canonical [2][]byte
	for i, text := range []string{a, b} {
		var v map[string]any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		canonical[i], _ = json.Marshal(v)
	}
	return bytes.Equal(canonical[0], canonical[1])
}

func TestSettingsAreWhatADriversObjectSays(t *testing.T) {
	d := driverAt("http://192.0.2.7:80")
	d.Annotations = map[string]string{"fairlead.io/credentials-secret": "clb-tls"}
	for name, timeout := range map[string]time.Duration{"ensureBackend": 20 * time.Second, "deleteLoadBalancer": time.Hour, "healthz": -time.Second, "makeCoffee": time.Second} {
		d.Spec.Webhooks = append(d.Spec.Webhooks, v1beta1.WebhookConfig{Name: name, Timeout: &metav1.Duration{Duration: timeout}})
	}
	s := settingsOf(d)
	want := map[webhook.Name]time.Duration{"ensureBackend": 20 * time.Second, "deleteLoadBalancer": time.Minute, "healthz": 10 * time.Second}
	if s.Name != "shop/clb" || s.URL != "http://192.0.2.7:80" || !s.AcceptsDryRun || s.Secret != "clb-tls" || !maps.Equal(s.Timeouts, want) {
		t.Errorf("%+v", s)
	}
	if _, err := clients(t).For(s); err != nil {
		t.Error(err)
	}
}

// stock is a View with one driver.
type stock struct{ driver *v1beta1.LoadBalancerDriver }

func (s stock) Driver(string, string) *v1beta1.LoadBalancerDriver { return s.driver }
func (stock) LoadBalancer(string, string) *v1beta1.LoadBalancer   { return nil }
func (stock) LoadBalancers(string) iter.Seq[*v1beta1.LoadBalancer] {
	return nobody[*v1beta1.LoadBalancer]
}
func (stock) BackendGroups(string) iter.Seq[*v1beta1.BackendGroup] {
	return nobody[*v1beta1.BackendGroup]
}
func (stock) BackendRecords(string) iter.Seq[*v1beta1.BackendRecord] {
	return nobody[*v1beta1.BackendRecord]
}
func (stock) Binds(string) iter.Seq[*v1.Bind] { return nobody[*v1.Bind] }
func nobody[T any](func(T) bool)              {}

// lbcf §6.4 L8: a driver that is away, or does not answer before the API server gives up, is a refusal that says so, or a
// warning where that is configured.
func TestWithoutAnAnswerObjectsAreRefusedOrLetThroughWithAWarning(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer slow.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		url  string
		away admission.Away
		want []string
		lets bool
	}{
		"hangs-fail": {slow.URL, admission.Fail, []string{"driver clb", "no answer", "waits no longer than 200ms"}, false},
		"hangs-warn": {slow.URL, admission.Warn, []string{"let through", "waits no longer than 200ms"}, true},
		"gone-fail":  {gone.URL, admission.Fail, []string{"no answer", "connection refused", "see that the driver runs at " + gone.URL}, false},
		"gone-warn":  {gone.URL, admission.Warn, []string{"let through", "connection refused"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &admission.Handler{
				View: func(context.Context) (admission.View, error) { return stock{driverAt(c.url)}, nil },
				Ask:  asking(clients(t)), Rules: admission.Rules{DriverAway: c.away},
			}
			const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"shop","name":"edge",
				"object":{"metadata":{"name":"edge","namespace":"shop"},"spec":{"lbDriver":"clb","lbSpec":{"vip":"198.51.100.20"}}}}}`
			w := httptest.NewRecorder()
			q := httptest.NewRequest(http.MethodPost, admission.PathValidateLoadBalancer+"?timeout=200ms", strings.NewReader(review))
			h.Routes()[admission.PathValidateLoadBalancer].ServeHTTP(w, q)
			var got struct {
				Response struct {
					Allowed  bool
					Warnings []string
					Status   struct{ Message string }
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Response.Allowed != c.lets {
				t.Fatalf("%v: %s", err, w.Body)
			}
			said := got.Response.Status.Message + strings.Join(got.Response.Warnings, "\n")
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q lacks %q", said, want)
				}
			}
		})
	}
}

// Whoever asks and whoever operates share a client: limits, circuit and connections are one driver's.
func TestAdmissionAsksByTheClientOfTheRecordsDriver(t *testing.T) {
	h := newHook(t)
	p, state := clients(t), fsmtest.New(t, "g")
	row := &fsm.Driver{Name: "shop/clb", URL: h.URL, Concurrent: 3, AcceptsDryRun: true}
	fsmtest.Tell(t, state, &fsm.PutDriver{Driver: *row})
	operators, err := p.For(drivers.Settings(row))
	if err != nil {
		t.Fatal(err)
	}
	a := (&Member{drivers: p, state: state}).ask(t.Context(), admission.Call{Driver: driverAt(h.URL), Backend: &admission.BackendQuestion{}})
	if after, err := p.For(drivers.Settings(row)); err != nil || after != operators || !a.Succ {
		t.Errorf("asked by another client: %+v, %v", a, err)
	}
}
