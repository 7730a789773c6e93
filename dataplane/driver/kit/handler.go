// SPDX-License-Identifier: Apache-2.0

// Package kit helps to write drivers: webhooks through which Fairlead, and LBCF, put backends on outside load balancers.
//
// A driver is a Driver, served by NewHandler; the messages are those of package webhook. Test asks a driver everything
// that the protocol lets one ask and says what is wrong, where the protocol says so, and what to do; `fairlead driver test`
// runs it. It promises to ask for nothing on the load balancer but what it takes off again. Sections (§) are those of the
// protocol's specification. Start reading at Driver; docs/drivers.md has a whole example.
package kit

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// Driver does what the webhooks ask for. Calls about one object come one after the other, calls about different ones at the
// same time. Every call but the validations is repeated until it succeeds, and perhaps once more: what is done already
// must succeed again (lbcf §3.14). ctx ends when the caller has stopped waiting; what a call does then may be repeated soon.
//
// With Fail nothing has been done and nothing will be; who cannot be sure returns an error, which becomes the HTTP status
// 500 and leaves open what happened. With DryRun nothing may be changed.
type Driver interface {
	// ValidateLoadBalancer judges what a user writes (lbcf §3.4). It is not repeated: users see the message.
	ValidateLoadBalancer(ctx context.Context, r webhook.ValidateLoadBalancerRequest) (webhook.Verdict, error)
	// CreateLoadBalancer makes the load balancer that r.LBSpec means, or finds it. LBInfo is its identity from now on (lbcf §3.5).
	CreateLoadBalancer(ctx context.Context, r webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error)
	// EnsureLoadBalancer gives it its attributes (lbcf §3.6).
	EnsureLoadBalancer(ctx context.Context, r webhook.LoadBalancerRequest) (webhook.Answer, error)
	// DeleteLoadBalancer deletes it. One that does not exist is deleted (lbcf §3.7).
	DeleteLoadBalancer(ctx context.Context, r webhook.LoadBalancerRequest) (webhook.Answer, error)
	// ValidateBackend judges the parameters that a user writes (lbcf §3.8).
	ValidateBackend(ctx context.Context, r webhook.ValidateBackendRequest) (webhook.Verdict, error)
	// GenerateBackendAddr says by which address the load balancer knows a backend; equally each time (lbcf §3.9).
	GenerateBackendAddr(ctx context.Context, r webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error)
	// EnsureBackend puts a backend on the load balancer, or gives it other parameters (lbcf §3.10).
	EnsureBackend(ctx context.Context, r webhook.BackendRequest) (webhook.EnsureBackendResponse, error)
	// DeregisterBackend takes a backend off. One that is not there, or whose load balancer is not, is off (lbcf §3.11).
	DeregisterBackend(ctx context.Context, r webhook.BackendRequest) (webhook.Answer, error)
}

// Judge is a Driver that says which pods stay although they are not ready (lbcf §3.12).
type Judge interface {
	JudgePodDeregister(ctx context.Context, r webhook.JudgePodDeregisterRequest) (webhook.JudgePodDeregisterResponse, error)
}

// Patient is a Driver that knows how it is (lbcf §3.13). Others are healthy as long as they answer.
type Patient interface {
	Healthy(ctx context.Context) bool
}

// HandlerOptions is how a Driver is served. All fields may be left out.
type HandlerOptions struct {
	// Token is the bearer token that callers must show. Default: everybody may call.
	Token string
	// Log hears of errors. Default nobody.
	Log *slog.Logger
}

// maxRequest bounds a request: whole Pods are in some, as many as a group has in judgePodDeregister.
const maxRequest = 16 << 20

// handler serves a Driver.
type handler struct {
	o     HandlerOptions
	calls map[webhook.Name]serve
}

// serve answers one request. Its error is a badRequest where the request is wrong.
type serve func(ctx context.Context, body []byte) (any, error)

// NewHandler serves d at the webhooks' names, below any path.
func NewHandler(d Driver, o HandlerOptions) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{o: o, calls: map[webhook.Name]serve{
		webhook.ValidateLoadBalancer: with(d.ValidateLoadBalancer),
		webhook.CreateLoadBalancer:   with(d.CreateLoadBalancer),
		webhook.EnsureLoadBalancer:   with(d.EnsureLoadBalancer),
		webhook.DeleteLoadBalancer:   with(d.DeleteLoadBalancer),
		webhook.ValidateBackend:      with(d.ValidateBackend),
		webhook.GenerateBackendAddr:  with(d.GenerateBackendAddr),
		webhook.EnsureBackend:        with(d.EnsureBackend),
		webhook.DeregisterBackend:    with(d.DeregisterBackend),
		webhook.Healthz: func(ctx context.Context, _ []byte) (any, error) {
			patient, ok := d.(Patient)
			return webhook.HealthzResponse{Healthy: !ok || patient.Healthy(ctx)}, nil
		},
	}}
	if judge, ok := d.(Judge); ok {
		h.calls[webhook.JudgePodDeregister] = with(judge.JudgePodDeregister)
	}
	return h
}

// badRequest is what is wrong with a request.
type badRequest struct{ error }

// with decodes a request for one of a Driver's methods.
func with[Q, A any](do func(context.Context, Q) (A, error)) serve {
	return func(ctx context.Context, body []byte) (any, error) {
		var request Q
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, badRequest{fmt.Errorf("the request: %w", err)}
		}
		return do(ctx, request)
	}
}

type attemptKey struct{}

// AttemptOf is the fence of the call that ctx belongs to (webhook.AttemptHeader). It never runs back for one backend; a
// driver that has seen a newer one for it may refuse the call, which comes late. LBCF sends none.
func AttemptOf(ctx context.Context) (fsm.Revision, bool) {
	r, ok := ctx.Value(attemptKey{}).(fsm.Revision)
	return r, ok
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := webhook.Name(path.Base(r.URL.Path))
	call, ok := h.calls[name]
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are called by POST", http.StatusMethodNotAllowed)
		return
	case !h.knows(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "no bearer token, or a wrong one", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, fmt.Sprintf("the request is longer than %d bytes", maxRequest), http.StatusRequestEntityTooLarge)
		}
		return // or the caller is gone
	}
	ctx := r.Context()
	var attempt fsm.Revision
	if _, err := fmt.Sscanf(r.Header.Get(webhook.AttemptHeader), "%d.%d", &attempt.Epoch, &attempt.Index); err == nil {
		ctx = context.WithValue(ctx, attemptKey{}, attempt)
	}
	answer, err := call(ctx, body)
	if bad := (badRequest{}); errors.As(err, &bad) {
		h.o.Log.Warn("bad request", "webhook", name, "err", bad)
		http.Error(w, bad.Error(), http.StatusBadRequest)
		return
	}
	var out []byte
	if err == nil {
		out, err = json.Marshal(answer)
	}
	if err != nil {
		h.o.Log.Error("webhook failed", "webhook", name, "err", err)
		http.Error(w, "the driver failed; its log says more", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out) // or the caller is gone
}

// knows tells whether the caller may call.
func (h *handler) knows(r *http.Request) bool {
	if h.o.Token == "" {
		return true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(h.o.Token)) == 1
}
