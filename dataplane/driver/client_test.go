// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// endpoint is a driver behind no network: the http.RoundTripper of a Client in a bubble.
type endpoint struct {
	mu    sync.Mutex
	seen  []sent
	serve func(*http.Request) (*http.Response, error)
}

// sent is what arrived at an endpoint.
type sent struct {
	url    string
	header http.Header
	length int64
	body   string
}

// RoundTrip implements http.RoundTripper.
func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.seen = append(e.seen, sent{r.URL.String(), r.Header.Clone(), r.ContentLength, string(body)})
	e.mu.Unlock()
	return e.serve(r)
}

func (e *endpoint) last(t *testing.T) sent {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen) == 0 {
		t.Fatal("nothing was sent")
	}
	return e.seen[len(e.seen)-1]
}

func (e *endpoint) calls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seen)
}

// answer serves an HTTP answer.
func answer(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// silence serves nothing until the caller gives up.
func silence(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// watch is a clock that starts at one hour, so that zero is no reading of it.
func watch() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Hour + time.Since(began) }
}

// client makes one of e.
func client(t *testing.T, e *endpoint, change func(*driver.Options)) *driver.Client {
	t.Helper()
	o := driver.Options{
		Name: "shop/d", URL: "http://driver.example:80/p?zone=1", HTTP: e, Now: watch(), Random: rand.NewPCG(1, 2), Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	c, err := driver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ensure makes a call, most of whose fields are of no concern.
func ensure(ctx context.Context, c *driver.Client, call driver.Call) (webhook.EnsureBackendResponse, error) {
	return c.EnsureBackend(ctx, call, webhook.BackendRequest{Attempt: webhook.Attempt{RecordID: "ensureBackend(u)"}, BackendAddr: "192.0.2.7:80"})
}

// all makes each call once.
func all(ctx context.Context, c *driver.Client) map[webhook.Name]error {
	errs := map[webhook.Name]error{}
	_, errs[webhook.ValidateLoadBalancer] = c.ValidateLoadBalancer(ctx, driver.Call{}, webhook.ValidateLoadBalancerRequest{Operation: webhook.Create})
	_, errs[webhook.CreateLoadBalancer] = c.CreateLoadBalancer(ctx, driver.Call{}, webhook.CreateLoadBalancerRequest{})
	_, errs[webhook.EnsureLoadBalancer] = c.EnsureLoadBalancer(ctx, driver.Call{}, webhook.LoadBalancerRequest{})
	_, errs[webhook.DeleteLoadBalancer] = c.DeleteLoadBalancer(ctx, driver.Call{}, webhook.LoadBalancerRequest{})
	_, errs[webhook.ValidateBackend] = c.ValidateBackend(ctx, driver.Call{}, webhook.ValidateBackendRequest{Operation: webhook.Create})
	_, errs[webhook.GenerateBackendAddr] = c.GenerateBackendAddr(ctx, driver.Call{}, webhook.GenerateBackendAddrRequest{})
	_, errs[webhook.EnsureBackend] = ensure(ctx, c, driver.Call{})
	_, errs[webhook.DeregisterBackend] = c.DeregisterBackend(ctx, driver.Call{}, webhook.BackendRequest{})
	_, errs[webhook.JudgePodDeregister] = c.JudgePodDeregister(ctx, driver.Call{}, webhook.JudgePodDeregisterRequest{NotReadyPods: []json.RawMessage{json.RawMessage(`{"metadata":{"uid":"a"}}`)}})
	_, _, errs[webhook.Healthz] = c.Healthz(ctx, driver.Call{})
	return errs
}

const everyAnswer = `{"status":"Succ","succ":true,"healthy":true,"backendAddr":"192.0.2.7:80"}`

// lbcf §3.1, §3.2, §3.13: what is sent, and where to.
func TestCallsGoOutAsTheProtocolSays(t *testing.T) {
	e := &endpoint{serve: answer(200, everyAnswer)}
	c := client(t, e, nil)
	for name, err := range all(t.Context(), c) {
		if err != nil {
			t.Error(name, err)
		}
	}
	paths := map[string]bool{}
	for _, s := range e.seen {
		paths[s.url] = true
		if s.header.Get("Content-Type") != "application/json" || s.length != int64(len(s.body)) || s.header.Get("Authorization") != "" {
			t.Errorf("%+v", s)
		}
		switch {
		case strings.Contains(s.url, "/healthz"):
			if s.body != "" {
				t.Errorf("healthz has the body %q", s.body)
			}
		case !strings.Contains(s.body, `"dryRun":false`):
			t.Errorf("%s: dryRun is not in %s", s.url, s.body)
		}
	}
	for _, n := range webhook.Names() {
		if !paths["http://driver.example:80/p/"+string(n)+"?zone=1"] {
			t.Errorf("%s was not called at its address: %v", n, paths)
		}
	}
	if got := e.seen[6].body; !regexp.MustCompile(`^\{"recordID":"ensureBackend\(u\)","retryID":"[0-9a-f-]{36}","dryRun":false,"lbInfo":null,"backendAddr":"192.0.2.7:80","parameters":null,"injectedInfo":null\}$`).MatchString(got) {
		t.Error(got)
	}
}

// lbcf §3.3, INV-10: retryID is another UUID at every attempt, recordID is not.
func TestRetryIDsNeverRepeat(t *testing.T) {
	e := &endpoint{serve: answer(200, `{"status":"Fail"}`)}
	c := client(t, e, nil)
	seen := map[string]bool{}
	for range 1000 {
		if _, err := ensure(t.Context(), c, driver.Call{}); err != nil {
			t.Fatal(err)
		}
		var r webhook.BackendRequest
		if err := json.Unmarshal([]byte(e.last(t).body), &r); err != nil || r.RecordID != "ensureBackend(u)" {
			t.Fatal(err, r)
		}
		if seen[r.RetryID] || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(r.RetryID) {
			t.Fatalf("%s, %d before it", r.RetryID, len(seen))
		}
		seen[r.RetryID] = true
	}
}

// lbcf §3.4, §3.8: what was before is said of updates only.
func TestOldValuesAreOfUpdatesOnly(t *testing.T) {
	e := &endpoint{serve: answer(200, everyAnswer)}
	c := client(t, e, nil)
	old := webhook.Map{"a": "b"}
	for operation, want := range map[webhook.Operation]bool{webhook.Create: false, webhook.Update: true} {
		_, err := c.ValidateLoadBalancer(t.Context(), driver.Call{}, webhook.ValidateLoadBalancerRequest{Operation: operation, OldAttributes: old})
		if got := strings.Contains(e.last(t).body, `"oldAttributes":{"a":"b"}`); err != nil || got != want {
			t.Error(operation, err, e.last(t).body)
		}
		_, err = c.ValidateBackend(t.Context(), driver.Call{}, webhook.ValidateBackendRequest{Operation: operation, OldParameters: old})
		if got := strings.Contains(e.last(t).body, `"OldParameters":{"a":"b"},"oldParameters":{"a":"b"}`); err != nil || got != want {
			t.Error(operation, err, e.last(t).body)
		}
	}
}

// lbcf §11 #15: the fence of an attempt goes along, and a token if there is one.
func TestHeadersCarryFenceAndToken(t *testing.T) {
	e := &endpoint{serve: answer(200, everyAnswer)}
	c := client(t, e, func(o *driver.Options) { o.Token = "s3cret" })
	if _, err := ensure(t.Context(), c, driver.Call{Attempt: fsm.Revision{Epoch: 3, Index: 17}}); err != nil {
		t.Fatal(err)
	}
	if h := e.last(t).header; h.Get(webhook.AttemptHeader) != "3.17" || h.Get("Authorization") != "Bearer s3cret" {
		t.Error(h)
	}
	c = client(t, e, func(o *driver.Options) { o.User = url.UserPassword("u", "pw") })
	if _, err := ensure(t.Context(), c, driver.Call{}); err != nil || e.last(t).header.Get("Authorization") != "Basic dTpwdw==" {
		t.Error(err, e.last(t).header)
	}
}

// lbcf §3.5 to §3.11: what counts of an answer counts with Succ only.
func TestAnswersCountAsTheProtocolSays(t *testing.T) {
	e := &endpoint{}
	c := client(t, e, nil)
	spec := webhook.Map{"pool": "dmz"}
	for body, want := range map[string]string{
		`{"status":"Succ","lbInfo":{"vip":"198.51.100.20"}}`: `Succ map[vip:198.51.100.20]`, // 3.5
		`{"status":"Succ"}`:                                     `Succ map[pool:dmz]`,
		`{"status":"Succ","lbInfo":{}}`:                         `Succ map[pool:dmz]`,
		`{"status":"Running","lbInfo":{"vip":"198.51.100.20"}}`: `Running map[]`,
		`{"status":"Fail","lbInfo":{"vip":"198.51.100.20"}}`:    `Fail map[]`,
	} {
		e.serve = answer(200, body)
		a, err := c.CreateLoadBalancer(t.Context(), driver.Call{}, webhook.CreateLoadBalancerRequest{LBSpec: spec})
		if got := fmt.Sprint(a.Status, a.LBInfo); err != nil || got != strings.Replace(want, " ", "", 1) && got != want {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
	for body, want := range map[string]webhook.Map{
		`{"status":"Succ","injectedInfo":{"memberID":"m"}}`:    {"memberID": "m"}, // 3.10
		`{"status":"Succ","injectedInfo":{}}`:                  nil,
		`{"status":"Running","injectedInfo":{"memberID":"m"}}`: nil,
		`{"status":"Fail","injectedInfo":{"memberID":"m"}}`:    nil,
	} {
		e.serve = answer(200, body)
		if a, err := ensure(t.Context(), c, driver.Call{}); err != nil || fmt.Sprint(a.InjectedInfo) != fmt.Sprint(want) || (a.InjectedInfo == nil) != (want == nil) {
			t.Errorf("%s: %v, %v", body, a, err)
		}
	}
	e.serve = answer(200, `{"status":"Running","backendAddr":"192.0.2.7:80","minRetryDelayInSeconds":"20"}`)
	if a, err := c.GenerateBackendAddr(t.Context(), driver.Call{}, webhook.GenerateBackendAddrRequest{}); err != nil || a.BackendAddr != "" || a.RetryAfter() != 20*time.Second {
		t.Error(a, err)
	}
	e.serve = answer(200, `{"status":"Succ","injectedInfo":{"memberID":"m"}}`)
	if a, err := c.DeregisterBackend(t.Context(), driver.Call{}, webhook.BackendRequest{}); err != nil || a.Status != webhook.Succ { // 3.11
		t.Error(a, err)
	}
}

// lbcf §3.12, §11 #41: only pods that were asked about can be kept, and nobody is asked about none.
func TestJudgesDecideOnlyAboutPodsTheyWereAskedAbout(t *testing.T) {
	e := &endpoint{serve: answer(200, `{"succ":true,"msg":"in-place upgrade","doNotDeregister":[{"metadata":{"uid":"b"}},{"metadata":{"uid":"x"}}]}`)}
	c := client(t, e, nil)
	pods := []json.RawMessage{json.RawMessage(`{"metadata":{"uid":"a"}}`), json.RawMessage(`{"metadata":{"uid":"b"}}`)}
	j, err := c.JudgePodDeregister(t.Context(), driver.Call{}, webhook.JudgePodDeregisterRequest{NotReadyPods: pods})
	if err != nil || !j.Succ || fmt.Sprint(j.Keep) != "[b]" || j.Strangers != 1 || j.Msg != "in-place upgrade" {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err = c.JudgePodDeregister(t.Context(), driver.Call{}, webhook.JudgePodDeregisterRequest{}); err != nil || !j.Succ || e.calls() != 1 {
		t.Errorf("%+v, %v, %d calls", j, err, e.calls())
	}
	e.serve = answer(200, `{"succ":true,"doNotDeregister":[{"metadata":{"uid":"b"}},{}]}`)
	if j, err = c.JudgePodDeregister(t.Context(), driver.Call{}, webhook.JudgePodDeregisterRequest{NotReadyPods: pods}); cause(err) != driver.CauseInvalid || len(j.Keep) != 0 {
		t.Errorf("%+v, %v", j, err)
	}
	if _, err = c.JudgePodDeregister(t.Context(), driver.Call{}, webhook.JudgePodDeregisterRequest{NotReadyPods: []json.RawMessage{json.RawMessage(`{}`)}}); cause(err) != driver.CauseRequest {
		t.Error(err)
	}
}

// lbcf §3.2 [FIX], §3.13: a driver without healthz is not said to be unhealthy.
func TestHealthOfOldDriversIsUnknown(t *testing.T) {
	for want, serve := range map[string]func(*http.Request) (*http.Response, error){
		"true true <nil>":   answer(200, `{"healthy":true}`),
		"false true <nil>":  answer(200, `{"healthy":false}`),
		"false false <nil>": answer(404, `404 page not found`),
		"false false healthz of driver shop/d: the driver answered 500 Internal Server Error": answer(500, `{}`),
	} {
		healthy, known, err := client(t, &endpoint{serve: serve}, nil).Healthz(t.Context(), driver.Call{})
		if got := fmt.Sprint(healthy, known, err); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// lbcf §5.9: a dry run asks drivers that accept it not to change anything, and does not call others.
func TestDryRunsCallOnlyDriversThatAcceptThem(t *testing.T) {
	e := &endpoint{serve: answer(200, everyAnswer)}
	for name, err := range all(t.Context(), client(t, e, func(o *driver.Options) { o.DryRun = true })) {
		if cause(err) != driver.CauseDryRun || driver.ResultOf("", err) != fsm.ResultFailed {
			t.Error(name, err)
		}
	}
	if e.calls() != 0 {
		t.Fatalf("%d calls", e.calls())
	}
	for name, err := range all(t.Context(), client(t, e, func(o *driver.Options) { o.DryRun, o.AcceptsDryRun = true, true })) {
		if err != nil {
			t.Error(name, err)
		}
	}
	for _, s := range e.seen {
		if !strings.Contains(s.url, "/healthz") && !strings.Contains(s.body, `"dryRun":true`) {
			t.Error(s)
		}
	}
}

// One call can be a dry run, as a request to the API server can.
func TestACallCanBeADryRunAlone(t *testing.T) {
	e := &endpoint{serve: answer(200, everyAnswer)}
	dry := driver.Call{DryRun: true}
	if _, err := ensure(t.Context(), client(t, e, nil), dry); cause(err) != driver.CauseDryRun || e.calls() != 0 {
		t.Errorf("not accepted: %v, %d calls", err, e.calls())
	}
	c := client(t, e, func(o *driver.Options) { o.AcceptsDryRun = true })
	for call, want := range map[driver.Call]string{dry: `"dryRun":true`, {}: `"dryRun":false`} {
		if _, err := ensure(t.Context(), c, call); err != nil || !strings.Contains(e.last(t).body, want) {
			t.Errorf("%+v: %v, %s", call, err, e.last(t).body)
		}
		r := webhook.ValidateBackendRequest{Operation: webhook.Create}
		if _, err := c.ValidateBackend(t.Context(), call, r); err != nil || !strings.Contains(e.last(t).body, want) {
			t.Errorf("%+v: %v, %s", call, err, e.last(t).body)
		}
	}
}

// lbcf §2.1 [FIX], §3.1: what a client cannot be made of is refused.
func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []driver.Options{
		{URL: ""}, {URL: "h:80"}, {URL: "ftp://h"},
		{URL: "http://h", Timeouts: map[webhook.Name]time.Duration{webhook.Healthz: -time.Second}},
		{URL: "http://h", Timeouts: map[webhook.Name]time.Duration{webhook.Healthz: time.Minute + 1}},
	} {
		if _, err := driver.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// cause is an error's; empty if it is none of ours.
func cause(err error) driver.Cause {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Cause
	}
	return ""
}

// lbcf §3.1 [FIX]: a webhook's timeout is the whole budget of its calls; ten seconds where none is given.
func TestTimeoutsAreTheWholeBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowBody := func(r *http.Request) (*http.Response, error) { // half the time for the head, and never an end
			time.Sleep(time.Second)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(endless{r.Context()})}, nil
		}
		for _, serve := range []func(*http.Request) (*http.Response, error){silence, slowBody} {
			c := client(t, &endpoint{serve: serve}, func(o *driver.Options) {
				o.Timeouts = map[webhook.Name]time.Duration{webhook.EnsureBackend: 2 * time.Second}
			})
			for want, ask := range map[time.Duration]func(driver.Call) error{
				2 * time.Second: func(call driver.Call) error { _, err := ensure(t.Context(), c, call); return err },
				10 * time.Second: func(call driver.Call) error {
					_, err := c.DeregisterBackend(t.Context(), call, webhook.BackendRequest{})
					return err
				},
			} {
				began := time.Now()
				if err := ask(driver.Call{}); cause(err) != driver.CauseTimeout || driver.ResultOf("", err) != fsm.ResultUnknown || time.Since(began) != want {
					t.Errorf("%v after %v, want %v", err, time.Since(began), want)
				}
			}
		}
	})
}

// endless is a body without an end, a byte a second.
type endless struct{ ctx context.Context }

func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.ctx.Done():
		return 0, e.ctx.Err()
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	}
}

// design §4: after the deadline nothing is written, and that is certain; a deadline never extends a timeout.
func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{serve: silence}
		now := watch()
		c := client(t, e, func(o *driver.Options) { o.Now = now })
		for _, deadline := range []time.Duration{now(), now() - time.Second} {
			_, err := ensure(t.Context(), c, driver.Call{Deadline: deadline})
			if cause(err) != driver.CauseLate || driver.ResultOf("", err) != fsm.ResultFailed || e.calls() != 0 {
				t.Error(err, e.calls())
			}
		}
		for deadline, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, time.Hour: 10 * time.Second} {
			began := time.Now()
			if _, err := ensure(t.Context(), c, driver.Call{Deadline: now() + deadline}); cause(err) != driver.CauseTimeout || time.Since(began) != want {
				t.Error(err, time.Since(began))
			}
		}
	})
}

// Whoever stops waiting gets an answer at once; whether the call takes effect nobody knows.
func TestCallsEndWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, &endpoint{serve: silence}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := ensure(ctx, c, driver.Call{})
		if cause(err) != driver.CauseGone || driver.ResultOf("", err) != fsm.ResultUnknown || time.Since(began) != time.Second {
			t.Error(err, time.Since(began))
		}
	})
}

// An Error tells its cause in metrics, what it is about in words, and no secrets.
func TestCallsAreObserved(t *testing.T) {
	var seen []driver.Observation
	e := &endpoint{serve: answer(200, `{"status":"Fail"}`)}
	c := client(t, e, func(o *driver.Options) {
		o.Observe = func(o driver.Observation) { seen = append(seen, o) }
		o.User, o.Token = url.UserPassword("u", "s3cret"), "s3cret"
	})
	_, _ = ensure(t.Context(), c, driver.Call{})
	e.serve = answer(503, "s3cret")
	_, err := ensure(t.Context(), c, driver.Call{})
	if err == nil || err.Error() != "ensureBackend of driver shop/d: the driver answered 503 Service Unavailable" {
		t.Error(err)
	}
	if len(seen) != 2 || !seen[0].Refused || seen[0].Err != nil || seen[1].Err == nil || seen[1].Err.Cause != driver.CauseStatus {
		t.Errorf("%+v", seen)
	}
}
