// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"
)

const (
	// maxBodyBytes holds two objects as large as the API server takes them (3 MiB each).
	maxBodyBytes = 8 << 20
	// maxCalls is how many drivers are asked at a time about one object.
	maxCalls = 16
)

// Paths of the webhooks, as LBCF's configuration has them. The misspelt one is LBCF's own.
const (
	PathValidateDriver        = "/validate-load-balancer-driver"
	PathValidateLoadBalancer  = "/validate-load-balancer"
	PathValidateBackendGroup  = "/validate-backend-group"
	PathValidateBind          = "/validate-bind"
	PathMutateDriver          = "/mutate-load-balancer-driver"
	PathMutateLoadBalancer    = "/mutate-load-balancer"
	PathMutateBackendGroup    = "/mutate-backend-group"
	PathMutateBackendGroupOld = "/mutate-backend-broup"
	PathMutateBind            = "/mutate-bind"
)

// Handler answers the API server's AdmissionReviews. The deadlines of reading and writing are the server's.
type Handler struct {
	// View gives what is stored, or an error as long as that is not known in full; then nothing is allowed that depends
	// on it.
	View func(context.Context) (View, error)
	// Ask makes a call of a driver, within the timeout of the driver's webhook and until the context ends.
	Ask func(context.Context, Call) Answer
	// Rules are those of this installation.
	Rules Rules
}

// Routes are the handlers by path.
func (h *Handler) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for path, kind := range map[string]Kind{
		PathValidateDriver: Driver, PathValidateLoadBalancer: LoadBalancer, PathValidateBackendGroup: BackendGroup, PathValidateBind: Bind,
	} {
		routes[path] = h.serve(kind, h.validate)
	}
	for path, kind := range map[string]Kind{
		PathMutateDriver: Driver, PathMutateLoadBalancer: LoadBalancer, PathMutateBind: Bind,
		PathMutateBackendGroup: BackendGroup, PathMutateBackendGroupOld: BackendGroup,
	} {
		routes[path] = h.serve(kind, func(_ context.Context, r Request) Decision { return Mutate(r) })
	}
	return routes
}

func (h *Handler) serve(kind Kind, decide func(context.Context, Request) Decision) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "post an AdmissionReview", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBodyBytes))
		if err != nil {
			status := http.StatusBadRequest
			if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(w, "read the AdmissionReview: "+err.Error(), status)
			return
		}
		review, request, err := readReview(kind, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := writeReview(review, decide(q.Context(), request))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // whoever asked is gone
	})
}

func (h *Handler) validate(ctx context.Context, r Request) Decision {
	view, err := h.View(ctx)
	unknown := &nothing{}
	if err != nil {
		view = unknown
	}
	d := Validate(r, view, h.Rules)
	if unknown.asked {
		return Decision{Denied: fmt.Sprintf("%s: cannot be judged yet: %v: try again in a moment", r.subject(), err)}
	}
	if len(d.Calls) == 0 {
		return d
	}
	answers := make([]Answer, len(d.Calls))
	var calls errgroup.Group
	calls.SetLimit(maxCalls)
	for i, c := range d.Calls {
		calls.Go(func() error {
			answers[i] = h.Ask(ctx, c)
			return nil
		})
	}
	_ = calls.Wait() // none fails: answers tell
	return Judge(d, answers, h.Rules)
}
