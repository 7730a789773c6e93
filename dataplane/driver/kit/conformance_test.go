// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// faulty is a memory with some of its methods replaced.
type faulty struct {
	*memory
	create     func(webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error)
	generate   func(webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error)
	ensure     func(webhook.BackendRequest) (webhook.EnsureBackendResponse, error)
	deregister func(webhook.BackendRequest) (webhook.Answer, error)
	remove     func(webhook.LoadBalancerRequest) (webhook.Answer, error)
	judge      []string
	unhealthy  bool
}

func (f *faulty) CreateLoadBalancer(ctx context.Context, r webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
	if f.create != nil {
		return f.create(r)
	}
	return f.memory.CreateLoadBalancer(ctx, r)
}

func (f *faulty) GenerateBackendAddr(ctx context.Context, r webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
	if f.generate != nil {
		return f.generate(r)
	}
	return f.memory.GenerateBackendAddr(ctx, r)
}

func (f *faulty) EnsureBackend(ctx context.Context, r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
	if f.ensure != nil {
		return f.ensure(r)
	}
	return f.memory.EnsureBackend(ctx, r)
}

func (f *faulty) DeregisterBackend(ctx context.Context, r webhook.BackendRequest) (webhook.Answer, error) {
	if f.deregister != nil {
		return f.deregister(r)
	}
	return f.memory.DeregisterBackend(ctx, r)
}

func (f *faulty) DeleteLoadBalancer(ctx context.Context, r webhook.LoadBalancerRequest) (webhook.Answer, error) {
	if f.remove != nil {
		return f.remove(r)
	}
	return f.memory.DeleteLoadBalancer(ctx, r)
}

func (f *faulty) JudgePodDeregister(_ context.Context, r webhook.JudgePodDeregisterRequest) (webhook.JudgePodDeregisterResponse, error) {
	a := webhook.JudgePodDeregisterResponse{Verdict: webhook.Verdict{Succ: true}, DoNotDeregister: r.NotReadyPods[:1]}
	for _, uid := range f.judge {
		a.DoNotDeregister = append(a.DoNotDeregister, []byte(`{"metadata":{"uid":"`+uid+`"}}`))
	}
	return a, nil
}

func (f *faulty) Healthy(context.Context) bool { return !f.unhealthy }

var options = kit.TestOptions{
	LBSpec: webhook.Map{"name": "edge"}, Parameters: webhook.Map{"weight": "80"}, Timeout: 300 * time.Millisecond, Within: 2 * time.Second,
}

// direct is the way to a handler without a network; nil is one that does not listen.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.Handler == nil {
		return nil, fmt.Errorf("%w: connection refused", driver.ErrNotSent)
	}
	w, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		d.ServeHTTP(w, r)
	}()
	select {
	case <-done:
		return w.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// test runs the conformance test against a handler, in a time of its own.
func test(t *testing.T, h http.Handler, o kit.TestOptions) (report kit.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.URL, o.HTTP = "http://driver.example/v1/", direct{h}
		var err error
		began := time.Now()
		if report, err = kit.Test(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Minute) // what hangs comes to its end
	})
	if n := report.Passed + report.Failed + report.Skipped; n != len(report.Checks) || n != 23 {
		t.Errorf("%d checks, %d counted", len(report.Checks), n)
	}
	for _, c := range report.Checks {
		if c.Section == "" || c.What == "" || c.Result == kit.Failed && (c.Why == "" || c.Remedy == "") || c.Result == kit.Skipped && c.Why == "" {
			t.Errorf("%+v", c)
		}
	}
	return report
}

func failed(r kit.Report) (names []string) {
	for _, c := range r.Checks {
		if c.Result == kit.Failed {
			names = append(names, c.Name)
		}
	}
	return names
}

func succ() webhook.Answer { return webhook.Answer{Status: webhook.Succ} }
func fail() webhook.Answer { return webhook.Answer{Status: webhook.Fail, Msg: "no"} }

// A driver that does what the protocol says passes, and nothing is left on the load balancer.
func TestAGoodDriverPasses(t *testing.T) {
	m := newMemory()
	m.balancers["foreign"] = map[string]string{"203.0.113.9:80": "1"}
	if r := test(t, kit.NewHandler(m, kit.HandlerOptions{}), options); r.Failed != 0 || r.Skipped != 1 {
		t.Errorf("%+v", r)
	}
	if fmt.Sprint(m.balancers) != "map[foreign:map[203.0.113.9:80:1]]" {
		t.Error(m.balancers)
	}
	if r := test(t, kit.NewHandler(&faulty{memory: newMemory()}, kit.HandlerOptions{}), options); r.Failed != 0 || r.Skipped != 0 {
		t.Errorf("%+v", r)
	}
	o := options
	o.Addresses, o.Token = []string{"192.0.2.1:80", "192.0.2.2:80"}, "s3cret"
	if r := test(t, kit.NewHandler(newMemory(), kit.HandlerOptions{Token: "s3cret"}), o); r.Failed != 0 {
		t.Errorf("%+v", r)
	}
}

// A driver that is at it for a while passes.
func TestADriverThatAnswersRunningPasses(t *testing.T) {
	f := &faulty{memory: newMemory()}
	var asked atomic.Int64
	f.create = func(r webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
		if asked.Add(1) == 1 {
			return webhook.CreateLoadBalancerResponse{Answer: webhook.Answer{Status: webhook.Running, Msg: "allocating"}}, nil
		}
		return f.memory.CreateLoadBalancer(t.Context(), r)
	}
	if r := test(t, kit.NewHandler(f, kit.HandlerOptions{}), options); r.Failed != 0 || asked.Load() != 3 {
		t.Errorf("%v, asked %d times", failed(r), asked.Load())
	}
}

// lbcf §3.5 to §3.14, §5.6: each mistake is found, by the check that is about it.
func TestEachMistakeIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		break_ func(*faulty)
		want   string
	}{
		"unhealthy": {func(f *faulty) { f.unhealthy = true }, "healthz"},
		"creates-two": {func(f *faulty) {
			n := 0
			f.create = func(webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
				n++
				name := fmt.Sprint("edge-", n)
				f.balancers[name] = map[string]string{}
				return webhook.CreateLoadBalancerResponse{Answer: succ(), LBInfo: webhook.Map{"name": name}}, nil
			}
		}, "createLoadBalancer-again"},
		"never-ready": {func(f *faulty) {
			f.create = func(webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
				return webhook.CreateLoadBalancerResponse{Answer: webhook.Answer{Status: webhook.Running}}, nil
			}
		}, "createLoadBalancer"},
		"success-in-lower-case": {func(f *faulty) {
			f.create = func(webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
				return webhook.CreateLoadBalancerResponse{Answer: webhook.Answer{Status: "succ"}}, nil
			}
		}, "createLoadBalancer"},
		"hangs": {func(f *faulty) {
			f.create = func(webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
				time.Sleep(500 * time.Millisecond)
				return webhook.CreateLoadBalancerResponse{Answer: succ()}, nil
			}
		}, "createLoadBalancer"},
		"500": {func(f *faulty) {
			f.create = func(webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
				return webhook.CreateLoadBalancerResponse{}, errors.New("a secret about my database")
			}
		}, "createLoadBalancer"},
		"one-address-for-all": {func(f *faulty) {
			f.generate = func(webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
				return webhook.GenerateBackendAddrResponse{Answer: succ(), BackendAddr: "192.0.2.1:80"}, nil
			}
		}, "generateBackendAddr"},
		"no-address": {func(f *faulty) {
			f.generate = func(webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
				return webhook.GenerateBackendAddrResponse{Answer: succ()}, nil
			}
		}, "generateBackendAddr"},
		"random-address": {func(f *faulty) {
			n := 0
			f.generate = func(webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
				n++
				return webhook.GenerateBackendAddrResponse{Answer: succ(), BackendAddr: fmt.Sprint(n)}, nil
			}
		}, "generateBackendAddr-again"},
		"registers-once": {func(f *faulty) {
			f.ensure = func(r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
				if f.has(r.BackendAddr) {
					return webhook.EnsureBackendResponse{Answer: fail()}, nil
				}
				return f.memory.EnsureBackend(t.Context(), r)
			}
		}, "ensureBackend-again"},
		"misses-the-unknown": {func(f *faulty) {
			f.deregister = func(r webhook.BackendRequest) (webhook.Answer, error) {
				if !f.has(r.BackendAddr) {
					return fail(), nil
				}
				return f.memory.DeregisterBackend(t.Context(), r)
			}
		}, "deregisterBackend-unknown deregisterBackend-again deregisterBackend-no-balancer"},
		"remembers-the-gone": {func(f *faulty) {
			gone := map[string]bool{}
			f.deregister = func(r webhook.BackendRequest) (webhook.Answer, error) {
				f.mu.Lock()
				gone[r.BackendAddr] = gone[r.BackendAddr] || f.balancers["edge"][r.BackendAddr] != ""
				f.mu.Unlock()
				return f.memory.DeregisterBackend(t.Context(), r)
			}
			f.ensure = func(r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
				f.mu.Lock()
				was := gone[r.BackendAddr]
				f.mu.Unlock()
				if was {
					return webhook.EnsureBackendResponse{Answer: fail()}, nil
				}
				return f.memory.EnsureBackend(t.Context(), r)
			}
		}, "address-returns backends-at-once"},
		"one-at-a-time": {func(f *faulty) {
			var busy atomic.Int64
			f.ensure = func(r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
				defer busy.Add(-1)
				if busy.Add(1) > 1 {
					return webhook.EnsureBackendResponse{Answer: fail()}, nil
				}
				time.Sleep(50 * time.Millisecond)
				return f.memory.EnsureBackend(t.Context(), r)
			}
		}, "backends-at-once"},
		"deletes-once": {func(f *faulty) {
			f.remove = func(r webhook.LoadBalancerRequest) (webhook.Answer, error) {
				f.mu.Lock()
				_, there := f.balancers["edge"]
				f.mu.Unlock()
				if !there {
					return fail(), nil
				}
				return f.memory.DeleteLoadBalancer(t.Context(), r)
			}
		}, "deleteLoadBalancer-again"},
		"forgets-to-deregister": {func(f *faulty) {
			f.deregister = func(webhook.BackendRequest) (webhook.Answer, error) { return succ(), nil }
		}, "deleteLoadBalancer"}, // this balancer is not deleted while it is in use
		"keeps-strangers": {func(f *faulty) { f.judge = []string{"stranger"} }, "judgePodDeregister"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &faulty{memory: newMemory()}
			c.break_(f)
			r := test(t, kit.NewHandler(f, kit.HandlerOptions{}), options)
			if got := strings.Join(failed(r), " "); got != c.want {
				t.Errorf("failed: %s; want %s", got, c.want)
			}
			for _, check := range r.Checks {
				if strings.Contains(check.Why, "database") {
					t.Error(check.Why)
				}
			}
		})
	}
}

func (m *memory) has(address string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.balancers["edge"][address]
	return ok
}

// Mistakes on the wire itself.
func TestMistakesOnTheWireAreFound(t *testing.T) {
	good := kit.NewHandler(newMemory(), kit.HandlerOptions{})
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  []string
	}{
		"succeeds-at-nonsense": {func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength == int64(len("this is no JSON")) {
				_, _ = fmt.Fprint(w, `{"status":"Succ"}`)
				return
			}
			good.ServeHTTP(w, r)
		}, []string{"bad-request"}},
		"strict": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/validateLoadBalancer") && r.ContentLength > 100 {
				http.Error(w, "unknown field", http.StatusBadRequest)
				return
			}
			good.ServeHTTP(w, r)
		}, []string{"unknown-fields"}},
		"all-404": {http.NotFound, []string{"validateLoadBalancer", "createLoadBalancer"}},
		"text":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") }, []string{"healthz"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failed(test(t, c.serve, options)); !slices.Equal(got, c.want) {
				t.Errorf("failed: %v; want %v", got, c.want)
			}
		})
	}
}

// Nobody is there: said once, and at once.
func TestADriverThatIsNotThereFailsOnce(t *testing.T) {
	o := options
	o.URL, o.HTTP = "http://driver.example", direct{}
	r, err := kit.Test(t.Context(), o)
	if err != nil || r.Failed != 1 || r.Passed != 0 || !strings.Contains(r.Checks[0].Remedy, "start the driver") {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err = kit.Test(ctx, o); err != nil || r.Skipped != len(r.Checks) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []kit.TestOptions{{URL: "driver"}, {URL: "http://h", Addresses: []string{"one"}}, {URL: "http://h", Timeout: time.Hour}} {
		if _, err := kit.Test(t.Context(), bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
