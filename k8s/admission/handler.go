// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

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
	// Metrics is optional.
	Metrics *Metrics
}

// Routes are the handlers by path.
func (h *Handler) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for path, kind := range map[string]Kind{
		PathValidateDriver: Driver, PathValidateLoadBalancer: LoadBalancer, PathValidateBackendGroup: BackendGroup, PathValidateBind: Bind,
	} {
		routes[path] = h.serve(path, kind, h.validate)
	}
	for path, kind := range map[string]Kind{
		PathMutateDriver: Driver, PathMutateLoadBalancer: LoadBalancer, PathMutateBind: Bind,
		PathMutateBackendGroup: BackendGroup, PathMutateBackendGroupOld: BackendGroup,
	} {
		routes[path] = h.serve(path, kind, func(_ context.Context, r Request) Decision { return Mutate(r) })
	}
	return routes
}

func (h *Handler) serve(path string, kind Kind, decide func(context.Context, Request) Decision) http.Handler {
	return Serve(path, kind, h.Metrics, decide)
}

// Serve answers AdmissionReviews about objects of a kind as decide has it, and counts them under a path. The context of decide
// ends before the API server gives up. metrics may be nil.
func Serve(path string, kind Kind, metrics *Metrics, decide func(context.Context, Request) Decision) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		began := time.Now()
		metrics.answered(path, answer(w, q, kind, func(ctx context.Context, r Request) Decision {
			d := decide(ctx, r)
			metrics.judged(kind, &d)
			return d
		}), time.Since(began))
	})
}

// answer answers a request, and gives the verdict.
func answer(w http.ResponseWriter, q *http.Request, kind Kind, decide func(context.Context, Request) Decision) string {
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "post an AdmissionReview", http.StatusMethodNotAllowed)
		return unreadable
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBodyBytes))
	if err != nil {
		status := http.StatusBadRequest
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "read the AdmissionReview: "+err.Error(), status)
		return unreadable
	}
	review, request, err := readReview(kind, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return unreadable
	}
	ctx, cancel := patience(q)
	defer cancel()
	d := decide(ctx, request)
	text, err := writeReview(review, d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return failed
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // whoever asked is gone
	return verdictOf(d)
}

// Of the time that the API server waits for an answer.
const (
	waitsLongest = 30 * time.Second // the longest that a configuration can say
	toAnswer     = time.Second      // is kept for the answer: a refusal that says why is better than none
)

// patience ends shortly before the API server, which says how long it waits, gives the request up.
func patience(q *http.Request) (context.Context, context.CancelFunc) {
	waits, err := time.ParseDuration(q.URL.Query().Get("timeout"))
	if err != nil || waits <= 0 || waits > waitsLongest {
		waits = waitsLongest
	}
	return context.WithTimeoutCause(q.Context(), max(waits-toAnswer, waits/2), fmt.Errorf("the API server waits no longer than %v", waits))
}

func (h *Handler) validate(ctx context.Context, r Request) Decision {
	d := h.judgeSettled(ctx, r)
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
