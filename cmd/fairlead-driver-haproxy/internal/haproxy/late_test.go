// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// caller makes a call with a fence, as it comes over the wire.
func caller(t *testing.T, d *Driver) func(name webhook.Name, attempt string) string {
	handler := kit.NewHandler(d, kit.HandlerOptions{})
	return func(name webhook.Name, attempt string) string {
		t.Helper()
		r := httptest.NewRequest("POST", "/"+string(name), strings.NewReader(`{"lbInfo":{"backend":"web"},"backendAddr":"192.0.2.1:80"}`))
		if attempt != "" {
			r.Header.Set(webhook.AttemptHeader, attempt)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
}

// The answer to a call that was under way for too long is Fail, whatever it asks for.
func TestCallsThatComeLateAreRefused(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	call := caller(t, d)
	for _, step := range []struct {
		name    webhook.Name
		attempt string
		want    webhook.Status
		there   bool
	}{
		{webhook.EnsureBackend, "1.10", webhook.Succ, true},
		{webhook.DeregisterBackend, "1.9", webhook.Fail, true},
		{webhook.EnsureBackend, "1.10", webhook.Succ, true}, // the same attempt, delivered twice
		{webhook.DeregisterBackend, "1.11", webhook.Succ, false},
		{webhook.EnsureBackend, "1.10", webhook.Fail, false},
		{webhook.EnsureBackend, "2.1", webhook.Succ, true}, // of a group that was restored
		{webhook.DeregisterBackend, "1.999", webhook.Fail, true},
		{webhook.DeregisterBackend, "", webhook.Succ, false}, // LBCF's calls do not say
	} {
		got := call(step.name, step.attempt)
		if !strings.Contains(got, fmt.Sprintf("%q:%q", "status", step.want)) || (m.servers["web/fl-192.0.2.1_80"] != nil) != step.there {
			t.Errorf("%s of attempt %q: %s, then %v", step.name, step.attempt, got, m.picture())
		}
	}
}

// A call that was refused was not carried out: it makes no other call late.
func TestRefusedCallsMakeNoneLate(t *testing.T) {
	t.Parallel()
	m := newModel()
	call := caller(t, newDriver(t, m))
	m.fault = func() fault { return unreachable }
	if got := call(webhook.EnsureBackend, "1.10"); !strings.Contains(got, "cannot be reached") {
		t.Fatal(got)
	}
	m.fault = func() fault { return fine }
	if got := call(webhook.EnsureBackend, "1.9"); !strings.Contains(got, "Succ") {
		t.Error(got)
	}
}

func TestTheMemoryOfAttemptsIsBounded(t *testing.T) {
	t.Parallel()
	a := newAttempts(2)
	at := func(attempt string) context.Context {
		var out context.Context
		r := httptest.NewRequest("POST", "/ensureBackend", strings.NewReader(`{}`))
		r.Header.Set(webhook.AttemptHeader, attempt)
		kit.NewHandler(&catch{into: &out}, kit.HandlerOptions{}).ServeHTTP(httptest.NewRecorder(), r)
		return out
	}
	k := func(port int) key { return drawn("web", fmt.Sprintf("192.0.2.1:%d", port)) }
	a.note(at("1.5"), k(1))
	a.note(at("1.6"), k(2))
	a.note(at("1.7"), k(1)) // used again
	a.note(at("1.8"), k(3)) // instead of 2
	for port, late := range map[int]bool{1: true, 2: false, 3: true} {
		if err := a.check(at("1.1"), k(port)); (err != nil) != late {
			t.Errorf("port %d: %v", port, err)
		}
	}
	if len(a.newest) != 2 || a.order.Len() != 2 {
		t.Errorf("%d are remembered", len(a.newest))
	}
}

// catch is a driver that takes the context of a call.
type catch struct {
	kit.Driver
	into *context.Context
}

func (c *catch) EnsureBackend(ctx context.Context, _ webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
	*c.into = ctx
	return webhook.EnsureBackendResponse{}, nil
}
