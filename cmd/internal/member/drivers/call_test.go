// SPDX-License-Identifier: Apache-2.0

package drivers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/member/drivers"
	"fairlead.io/fairlead/dataplane/driver/pool"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/internal/freeport"
)

// shelf is what a member knows of Kubernetes, by name.
type shelf map[string]string

func (s shelf) get(key string) (json.RawMessage, bool) {
	raw, ok := s[key]
	return json.RawMessage(raw), ok
}

func (s shelf) Pod(namespace, name, uid string) (json.RawMessage, bool) {
	return s.get("pod " + namespace + "/" + name + "/" + uid)
}

func (s shelf) Unavailable(namespace, name string) string {
	return s["unavailable "+namespace+"/"+name]
}

func (s shelf) Service(namespace, name string) (json.RawMessage, bool) {
	return s.get("service " + namespace + "/" + name)
}

func (s shelf) NodeAddresses(name string) (json.RawMessage, bool) { return s.get("node " + name) }

// record is a record with one driver.
type record struct {
	*fsm.State
	t *testing.T
}

func (r record) must(c fsm.Command) {
	r.t.Helper()
	fsmtest.Tell(r.t, r.State, c)
}

// rig is a driver that answers as a test says, and the way to it.
type rig struct {
	*drivers.Drivers
	record  record
	clients drivers.Pool
	objects shelf
	status  int
	answer  string
	path    string
	header  http.Header
	body    string
	now     func() time.Duration
	skipped atomic.Int64 // by which its clock is ahead
}

func newRig(t *testing.T, change func(*fsm.Driver)) *rig {
	t.Helper()
	began := time.Now()
	r := &rig{record: record{fsm.New(), t}, objects: shelf{}, status: http.StatusOK, answer: `{"status":"Succ"}`}
	r.now = func() time.Duration { return time.Hour + time.Since(began) + time.Duration(r.skipped.Load()) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.path, r.header, r.body = q.URL.Path, q.Header, string(body)
		w.WriteHeader(r.status)
		fmt.Fprint(w, r.answer)
	}))
	t.Cleanup(server.Close)
	row := fsm.Driver{Name: "kube-system/lbcf-edge", URL: server.URL + "/v1"}
	if change != nil {
		change(&row)
	}
	r.record.must(&fsm.InitGroup{Group: "test", Format: fsm.NewestFormat})
	r.record.must(&fsm.PutDriver{Driver: row})
	clients, err := pool.New(pool.Options{Now: r.now, Random: func() rand.Source { return rand.NewPCG(1, 2) }, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Check: func(context.Context, netip.AddrPort) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clients.Close)
	r.clients, r.Drivers = clients, drivers.New(r.record, clients, r.objects)
	return r
}

func (r *rig) driver(t *testing.T) leader.Driver {
	t.Helper()
	d, ok := r.Find("kube-system/lbcf-edge")
	if !ok {
		t.Fatal("no such driver")
	}
	return d
}

// call makes a call of a committed attempt, with time enough.
func (r *rig) call(t *testing.T, a fsm.Action, l *fsm.LoadBalancer, b *fsm.Binding) leader.Answer {
	t.Helper()
	r.path = ""
	return r.driver(t).Call(t.Context(), a, leader.Request{
		Balancer: l, Binding: b, Attempt: fsm.Revision{Epoch: 3, Index: 77}, Deadline: r.now() + 10*time.Second,
	})
}

var retryID = regexp.MustCompile(`"retryID":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`)

// sent compares the request with the specification's, but for the retryID, which only has to be a UUID.
func (r *rig) sent(t *testing.T, path, want string) {
	t.Helper()
	if r.path != path {
		t.Errorf("sent to %q, want %q", r.path, path)
	}
	if !retryID.MatchString(r.body) {
		t.Errorf("no retryID that is a UUID: %s", r.body)
	}
	var have, asked map[string]any
	for text, into := range map[string]*map[string]any{r.body: &have, want: &asked} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	have["retryID"] = asked["retryID"]
	if !reflect.DeepEqual(have, asked) {
		t.Errorf("sent\n%s\nwant\n%s", r.body, want)
	}
	if r.header.Get("Content-Type") != "application/json" || r.header.Get("Fairlead-Attempt") != "3.77" {
		t.Errorf("headers %v", r.header)
	}
}

func kv(pairs ...string) []fsm.KV {
	var out []fsm.KV
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, fsm.KV{Key: pairs[i], Value: pairs[i+1]})
	}
	return out
}

const (
	lbUID      = "0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01"
	recordUID  = "9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5"
	podUID     = "5b0c1b6e-2f0a-4d53-9a51-0d9c5d1f7a10"
	podJSON    = `{"metadata":{"name":"web-0","namespace":"shop","uid":"5b0c1b6e-2f0a-4d53-9a51-0d9c5d1f7a10","labels":{"app":"web"}},"spec":{"nodeName":"node-1","containers":[{"name":"web","image":"web:7"}]},"status":{"phase":"Running","podIP":"10.244.1.17","conditions":[{"type":"Ready","status":"True"}]}}`
	svcJSON    = `{"metadata":{"name":"web-svc","namespace":"shop"},"spec":{"type":"NodePort","ports":[{"port":80,"protocol":"TCP","targetPort":8080,"nodePort":31080}]},"status":{"loadBalancer":{}}}`
	nodeJSON   = `[{"type":"InternalIP","address":"192.0.2.11"},{"type":"Hostname","address":"node-1"}]`
	identified = "x"
)

func lb() *fsm.LoadBalancer {
	return &fsm.LoadBalancer{
		ID: "LoadBalancer/shop/edge/" + lbUID, UID: lbUID, Driver: "kube-system/lbcf-edge", Identity: identified,
		Info: kv("port", "443", "vip", "198.51.100.20"), Attributes: kv("algo", "least-conn"), Synced: kv("algo", "rr"), Spec: kv("pool", "dmz", "port", "443"),
	}
}

func podBinding() *fsm.Binding {
	return &fsm.Binding{
		ID: "shop/8e37c738700571d3078073269cf4474d", UID: recordUID, Address: "10.244.1.17:8080",
		Parameters: kv("weight", "80"), Attributes: kv("algo", "maglev"),
		Backend: fsm.Backend{Kind: "Pod", Name: "web-0", UID: podUID, Port: 8080, Protocol: "TCP"},
	}
}

// Rule: lbcf §3.5.
func TestCreateLoadBalancerIsSentAsSpecified(t *testing.T) {
	r := newRig(t, nil)
	l := lb()
	l.Identity, l.Info, l.Attributes = "", nil, kv("algo", "maglev")
	r.answer = `{"status":"Running","msg":"allocating address","minRetryDelayInSeconds":15}`
	if a := r.call(t, fsm.ActionCreateBalancer, l, nil); a.Result != fsm.ResultRunning || a.RetryAfter != 15*time.Second || a.Message != "allocating address" {
		t.Errorf("%+v", a)
	}
	r.sent(t, "/v1/createLoadBalancer", `{"recordID":"createLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01)","retryID":"f5f7d5f0-5d7c-4f57-9a8e-1c6a0c0d7b11","dryRun":false,"lbSpec":{"pool":"dmz","port":"443"},"attributes":{"algo":"maglev"}}`)
	r.answer = `{"status":"Succ","msg":"","lbInfo":{"vip":"198.51.100.20","port":"443"}}`
	if a := r.call(t, fsm.ActionCreateBalancer, l, nil); a.Result != fsm.ResultSucceeded || !reflect.DeepEqual(a.Returned, kv("port", "443", "vip", "198.51.100.20")) {
		t.Errorf("%+v", a)
	}
	l.UID = "0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01-edge-a"
	r.call(t, fsm.ActionCreateBalancer, l, nil)
	if !strings.Contains(r.body, `"recordID":"createLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01-edge-a)"`) {
		t.Errorf("lbcf §3.3, of a Bind's entry: %s", r.body)
	}
}

// Rule: lbcf §3.6.
func TestEnsureLoadBalancerIsSentAsSpecified(t *testing.T) {
	r := newRig(t, nil)
	r.answer = `{"status":"Fail","msg":"data plane 3 unreachable","minRetryDelayInSeconds":30}`
	if a := r.call(t, fsm.ActionEnsureBalancer, lb(), nil); a.Result != fsm.ResultFailed || !a.Refused || a.RetryAfter != 30*time.Second {
		t.Errorf("%+v", a)
	}
	r.sent(t, "/v1/ensureLoadBalancer", `{"recordID":"ensureLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01)","retryID":"x","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"attributes":{"algo":"least-conn"}}`)
}

// Rule: lbcf §3.7.
func TestDeleteLoadBalancerIsSentAsSpecified(t *testing.T) {
	r := newRig(t, nil)
	r.answer = `{"status":"Succ","msg":"released"}`
	if a := r.call(t, fsm.ActionDeleteBalancer, lb(), nil); a.Result != fsm.ResultSucceeded || a.Message != "released" {
		t.Errorf("%+v", a)
	}
	r.sent(t, "/v1/deleteLoadBalancer", `{"recordID":"deleteLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01)","retryID":"x","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"attributes":{"algo":"least-conn"}}`)
	of := lb()
	of.ID, of.UID = "Bind/shop/web/"+lbUID+"/edge", lbUID+"-edge"
	r.call(t, fsm.ActionDeleteBalancer, of, nil) // attributes are lastSyncedAttributes
	r.sent(t, "/v1/deleteLoadBalancer", `{"recordID":"deleteLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01-edge)","retryID":"x","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"attributes":{"algo":"rr"}}`)
	never := lb()
	never.Identity, never.Info = "", nil // its creation never succeeded, and the call is made regardless
	r.call(t, fsm.ActionDeleteBalancer, never, nil)
	r.sent(t, "/v1/deleteLoadBalancer", `{"recordID":"deleteLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01)","retryID":"x","dryRun":false,"lbInfo":null,"attributes":{"algo":"least-conn"},"lbSpec":{"pool":"dmz","port":"443"}}`)
}

// Rule: lbcf §3.9.
func TestGenerateBackendAddrIsSentAsSpecified(t *testing.T) {
	r := newRig(t, nil)
	r.objects["pod shop/web-0/"+podUID] = podJSON
	r.answer = `{"status":"Succ","backendAddr":"10.244.1.17:8080"}`
	b := podBinding()
	b.Address = ""
	if a := r.call(t, fsm.ActionAddress, lb(), b); a.Result != fsm.ResultSucceeded || a.Address != "10.244.1.17:8080" {
		t.Errorf("%+v", a)
	}
	r.sent(t, "/v1/generateBackendAddr", `{"recordID":"generateBackendAddr(9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5)","retryID":"x","dryRun":false,
		"lbInfo":{"vip":"198.51.100.20","port":"443"},"lbAttributes":{"algo":"maglev"},"parameters":{"weight":"80"},
		"podBackend":{"pod":`+podJSON+`,"port":{"portNumber":8080,"port":8080,"protocol":"TCP"}},"serviceBackend":null}`)

	r.objects["service shop/web-svc"], r.objects["node node-1"] = svcJSON, nodeJSON
	b.Attributes, b.Parameters = nil, nil
	b.Backend = fsm.Backend{Kind: "Service", Name: "web-svc", Port: 80, Protocol: "TCP", NodePort: 31080, Node: "node-1"}
	r.call(t, fsm.ActionAddress, lb(), b)
	r.sent(t, "/v1/generateBackendAddr", `{"recordID":"generateBackendAddr(9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5)","retryID":"x","dryRun":false,
		"lbInfo":{"vip":"198.51.100.20","port":"443"},"lbAttributes":null,"parameters":null,"podBackend":null,
		"serviceBackend":{"service":`+svcJSON+`,"port":{"portNumber":80,"port":80,"protocol":"TCP"},"nodeName":"node-1","nodeAddresses":`+nodeJSON+`}}`)

	r.answer = `{"status":"Succ"}` // [FIX]: an empty address is no answer
	if a := r.call(t, fsm.ActionAddress, lb(), b); a.Result != fsm.ResultUnknown || a.Address != "" {
		t.Errorf("an empty address: %+v", a)
	}
}

// What a call is about may be gone. Then nothing is sent, and somebody can read why (lbcf §4.2).
func TestGenerateBackendAddrIsNotSentWithoutItsObjects(t *testing.T) {
	r := newRig(t, nil)
	r.objects["pod shop/web-0/another"] = podJSON
	r.objects["service shop/svc-1"], r.objects["service shop/svc-2"], r.objects["node bad"] = svcJSON, svcJSON, `{}`
	for want, at := range map[string]fsm.Backend{
		"pod shop/web-0 does not exist any more, or is another one of that name": {Kind: "Pod", Name: "web-0", UID: podUID},
		"Service shop/svc-0 does not exist":                                      {Kind: "Service", Name: "svc-0", Node: "node-1"},
		"Node node-1 does not exist":                                             {Kind: "Service", Name: "svc-1", Node: "node-1"},
		"addresses of Node bad":                                                  {Kind: "Service", Name: "svc-2", Node: "bad"},
		"has an address of its own":                                              {Kind: "Static"},
	} {
		b := podBinding()
		b.Address, b.Backend = "", at
		if a := r.call(t, fsm.ActionAddress, lb(), b); a.Result != fsm.ResultFailed || a.Refused || !strings.HasPrefix(a.Message, "not sent: ") || !strings.Contains(a.Message, want) || r.path != "" {
			t.Errorf("%+v: %+v, sent to %q", at, a, r.path)
		}
	}
}

// Where no API server is read nobody can say that an object is gone: that is the reason, and what to do instead.
func TestGenerateBackendAddrSaysThatNoAPIServerIsRead(t *testing.T) {
	r := newRig(t, nil)
	r.Drivers = drivers.New(r.record, r.clients, nil)
	for _, at := range []fsm.Backend{{Kind: "Pod", Name: "web-0", UID: podUID}, {Kind: "Service", Name: "svc-0", Node: "node-1"}} {
		b := podBinding()
		b.Address, b.Backend = "", at
		a := r.call(t, fsm.ActionAddress, lb(), b)
		if a.Result != fsm.ResultFailed || a.Refused || !strings.HasPrefix(a.Message, "not sent: no API server is read") || !strings.Contains(a.Message, "spec.static") || r.path != "" {
			t.Errorf("%+v: %+v, sent to %q", at, a, r.path)
		}
	}
}

// lbcf §5.2, INV-12: a pod that is not available any more is not asked about; it is tried again (§4.2).
func TestGenerateBackendAddrIsNotSentForAPodThatIsNotAvailable(t *testing.T) {
	r := newRig(t, nil)
	r.objects["pod shop/web-0/"+podUID], r.objects["unavailable shop/web-0"] = podJSON, "is not ready"
	b := podBinding()
	b.Address = ""
	a := r.call(t, fsm.ActionAddress, lb(), b)
	if a.Result != fsm.ResultFailed || a.Refused || a.Message != "not sent: pod shop/web-0 is not ready" || r.path != "" {
		t.Errorf("%+v, sent to %q", a, r.path)
	}
}

// Rule: lbcf §3.10.
func TestEnsureBackendIsSentAsSpecified(t *testing.T) {
	r := newRig(t, nil)
	r.answer = `{"status":"Succ","msg":"","injectedInfo":{"memberID":"m-4711"}}`
	if a := r.call(t, fsm.ActionEnsure, lb(), podBinding()); a.Result != fsm.ResultSucceeded || !reflect.DeepEqual(a.Returned, kv("memberID", "m-4711")) {
		t.Errorf("%+v", a)
	}
	r.sent(t, "/v1/ensureBackend", `{"recordID":"ensureBackend(9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5)","retryID":"x","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"backendAddr":"10.244.1.17:8080","parameters":{"weight":"80"},"injectedInfo":null}`)
}

// lbcf §3.11: with what the record has, and nothing of Kubernetes; an injectedInfo in the answer is not heeded.
// Rule: lbcf §3.11.
func TestDeregisterBackendIsSentAsSpecified(t *testing.T) {
	r := newRig(t, nil)
	b := podBinding()
	b.Returned = kv("memberID", "m-4711")
	r.answer = `{"status":"Running","msg":"draining 42 connections","minRetryDelayInSeconds":20,"injectedInfo":{"memberID":"m-1"}}`
	if a := r.call(t, fsm.ActionDeregister, lb(), b); a.Result != fsm.ResultRunning || a.RetryAfter != 20*time.Second || len(a.Returned) != 0 {
		t.Errorf("%+v", a)
	}
	r.sent(t, "/v1/deregisterBackend", `{"recordID":"deregisterBackend(9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5)","retryID":"x","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"backendAddr":"10.244.1.17:8080","parameters":{"weight":"80"},"injectedInfo":{"memberID":"m-4711"}}`)
}

// lbcf §4.2: which class an outcome is of. Whatever is no usable answer to a request that was sent may still take effect.
// Rule: lbcf §4.2.
func TestOutcomesAreOfTheSpecifiedClasses(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		answer  string
		result  fsm.Result
		refused bool
		hint    time.Duration
	}{
		"Succ":                  {200, `{"status":"Succ"}`, fsm.ResultSucceeded, false, 0},
		"Succ-with-a-hint":      {200, `{"status":"Succ","minRetryDelayInSeconds":0}`, fsm.ResultSucceeded, false, 0},
		"Fail":                  {200, `{"status":"Fail"}`, fsm.ResultFailed, true, 0},
		"Fail-with-a-hint":      {200, `{"status":"Fail","minRetryDelayInSeconds":7}`, fsm.ResultFailed, true, 7 * time.Second},
		"Fail-hint-below-zero":  {200, `{"status":"Fail","minRetryDelayInSeconds":-7}`, fsm.ResultFailed, true, 0},
		"Running":               {200, `{"status":"Running"}`, fsm.ResultRunning, false, 0},
		"Running-with-a-hint":   {200, `{"status":"Running","minRetryDelayInSeconds":"20"}`, fsm.ResultRunning, false, 20 * time.Second},
		"invalid-status":        {200, `{"status":"succ"}`, fsm.ResultUnknown, false, 0},
		"empty-status":          {200, `{}`, fsm.ResultUnknown, false, 0},
		"no-JSON":               {200, `Succ`, fsm.ResultUnknown, false, 0},
		"empty-body":            {200, ``, fsm.ResultUnknown, false, 0},
		"wrong-type":            {200, `{"status":1}`, fsm.ResultUnknown, false, 0},
		"transport-error-500":   {500, `{"status":"Succ"}`, fsm.ResultUnknown, false, 0},
		"transport-error-201":   {201, `{"status":"Succ"}`, fsm.ResultUnknown, false, 0},
		"transport-error-2.000": {202, ``, fsm.ResultUnknown, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.status, r.answer = c.status, c.answer
			a := r.call(t, fsm.ActionEnsure, lb(), podBinding())
			if a.Result != c.result || a.Refused != c.refused || a.RetryAfter != c.hint || a.Held || c.result == fsm.ResultUnknown && a.Message == "" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// A driver that is not there was not asked, for certain; after some calls, and a while, it is left alone, and the words stay the same.
func TestADriverThatIsAwayIsHeld(t *testing.T) {
	closed, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	r := newRig(t, func(row *fsm.Driver) { row.URL = "http://" + closed.Addr().String() })
	messages := map[string]bool{}
	held := 0
	for i := range 20 {
		if i == 4 {
			r.skipped.Add(int64(time.Minute))
		}
		a := r.call(t, fsm.ActionEnsure, lb(), podBinding())
		if a.Result != fsm.ResultFailed || a.Refused {
			t.Fatalf("%+v", a)
		}
		if a.Held {
			held++
			messages[a.Message] = true
			if a.RetryAfter <= 0 {
				t.Errorf("held for no time: %+v", a)
			}
		}
	}
	if s := r.driver(t).(leader.Silencer); held < 10 || len(messages) != 1 || s.Silence() == nil {
		t.Errorf("%d calls held, %v, silence %v", held, messages, s.Silence())
	}
}

// lbcf §3.1, [FIX]: a webhook's timeout is its whole budget.
func TestTermsAreThoseOfTheRecord(t *testing.T) {
	r := newRig(t, func(row *fsm.Driver) {
		row.Timeouts = []fsm.WebhookTimeout{{Webhook: "deregisterBackend", Timeout: 3 * time.Second}, {Webhook: "deleteLoadBalancer", Timeout: 4 * time.Second}}
		row.Concurrent, row.Settle = 7, 30*time.Second
	})
	for a, want := range map[fsm.Action]time.Duration{
		fsm.ActionDeregister: 3 * time.Second, fsm.ActionDeleteBalancer: 4 * time.Second, fsm.ActionAddress: 10 * time.Second,
		fsm.ActionEnsure: 10 * time.Second, fsm.ActionEnsureBalancer: 10 * time.Second, fsm.ActionCreateBalancer: 10 * time.Second,
	} {
		if have := r.driver(t).Terms(a); have != (leader.Terms{Timeout: want, Settle: 30 * time.Second, Concurrent: 7}) {
			t.Errorf("%s: %+v", a, have)
		}
	}
	plain := newRig(t, nil)
	if have := plain.driver(t).Terms(fsm.ActionEnsure).Concurrent; have != leader.DefaultConcurrent {
		t.Errorf("%d calls at once; the client's limit must be the operator's", have)
	}
	if _, ok := plain.Find("kube-system/other"); ok {
		t.Error("found a driver that is not in the record")
	}
}

func TestADriverWithoutAUsableAddressIsNotCalledAndSaysSo(t *testing.T) {
	r := newRig(t, func(row *fsm.Driver) { row.URL = "ftp://192.0.2.7" })
	if a := r.call(t, fsm.ActionEnsure, lb(), podBinding()); a.Result != fsm.ResultFailed || !strings.Contains(a.Message, "LoadBalancerDriver") {
		t.Errorf("%+v", a)
	}
}
