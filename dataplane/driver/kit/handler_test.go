// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// lbcf §3.1: what is no call, or no JSON, is answered with a status that says so, and the driver hears nothing of it.
func TestTheHandlerRefusesWhatIsNoCall(t *testing.T) {
	h := kit.NewHandler(newMemory(), kit.HandlerOptions{Token: "s3cret"})
	for name, c := range map[string]struct {
		method, path, token, body string
		want                      int
	}{
		"call":          {"POST", "/v1/ensureBackend", "Bearer s3cret", `{"fieldThatNobodyKnows":1}`, 200},
		"health":        {"POST", "/healthz", "Bearer s3cret", ``, 200},
		"get":           {"GET", "/healthz", "Bearer s3cret", ``, 405},
		"unknown":       {"POST", "/dropEverything", "Bearer s3cret", `{}`, 404},
		"other-case":    {"POST", "/EnsureBackend", "Bearer s3cret", `{}`, 404},
		"no-judge":      {"POST", "/judgePodDeregister", "Bearer s3cret", `{}`, 404},
		"no-token":      {"POST", "/ensureBackend", "", `{}`, 401},
		"wrong-token":   {"POST", "/ensureBackend", "Bearer s3cre", `{}`, 401},
		"wrong-scheme":  {"POST", "/ensureBackend", "s3cret", `{}`, 401},
		"no-json":       {"POST", "/ensureBackend", "Bearer s3cret", `nonsense`, 400},
		"empty":         {"POST", "/ensureBackend", "Bearer s3cret", ``, 400},
		"wrong-type":    {"POST", "/ensureBackend", "Bearer s3cret", `{"parameters":{"weight":50}}`, 400},
		"far-too-large": {"POST", "/ensureBackend", "Bearer s3cret", `{"backendAddr":"` + strings.Repeat("x", 16<<20) + `"}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			if c.token != "" {
				r.Header.Set("Authorization", c.token)
			}
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
}

// fenced notes the fence of its newest call.
type fenced struct {
	*memory
	attempt fsm.Revision
	known   bool
}

func (f *fenced) EnsureBackend(ctx context.Context, r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
	f.attempt, f.known = kit.AttemptOf(ctx)
	return f.memory.EnsureBackend(ctx, r)
}

// lbcf §11 #15: a driver can see the fence of a call.
func TestADriverSeesTheFenceOfACall(t *testing.T) {
	f := &fenced{memory: newMemory()}
	h := kit.NewHandler(f, kit.HandlerOptions{})
	for header, want := range map[string]fsm.Revision{"3.17": {Epoch: 3, Index: 17}, "": {}, "x": {}} {
		r := httptest.NewRequest(http.MethodPost, "/ensureBackend", strings.NewReader(`{}`))
		r.Header.Set(webhook.AttemptHeader, header)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if f.attempt != want || f.known != (header == "3.17") {
			t.Errorf("%q: %v %v", header, f.attempt, f.known)
		}
	}
}
