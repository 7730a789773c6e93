// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// clinic is a handler with drivers that answer what a test says.
type clinic struct {
	Handler
	mu    sync.Mutex
	asked []Call
}

func newClinic(answer Answer) *clinic {
	c := &clinic{}
	c.View = func(context.Context) (View, error) { return town(), nil }
	c.Ask = func(_ context.Context, call Call) Answer {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, call)
		return answer
	}
	return c
}

func reviewOf(op admissionv1.Operation, object, old []byte) *admissionv1.AdmissionReview {
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "uid-7", Operation: op, Namespace: "shop", Name: "x",
			Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old}},
	}
}

// post sends a review and gives the answer's status and what it says.
func (c *clinic) post(t *testing.T, path string, review any) (int, admissionv1.AdmissionReview, string) {
	t.Helper()
	body, ok := review.([]byte)
	if !ok {
		var err error
		if body, err = json.Marshal(review); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	c.Routes()[path].ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	var out admissionv1.AdmissionReview
	text := w.Body.String()
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, out, text
}

// lbcf §6.1
func TestEveryPathOfLBCFAnswersAboutItsKind(t *testing.T) {
	for path, kind := range map[string]Kind{
		"/validate-load-balancer-driver": Driver, "/validate-load-balancer": LoadBalancer, "/validate-backend-group": BackendGroup, "/validate-bind": Bind,
	} {
		c := newClinic(Answer{Succ: true})
		for edit, denied := range map[string]bool{"": false, `{spec: {driverType: "", lbDriver: "", loadBalancers: []}}`: true} {
			code, got, text := c.post(t, path, reviewOf(create, edited(t, kind, edit), nil))
			if code != http.StatusOK || got.APIVersion != "admission.k8s.io/v1" || got.Kind != "AdmissionReview" || got.Response.UID != "uid-7" ||
				got.Response.Allowed == denied || got.Request != nil {
				t.Errorf("%s: %d %s", path, code, text)
			}
			if denied && (got.Response.Result.Code != 0 || !strings.HasPrefix(got.Response.Result.Message, string(kind)+" shop/x: ")) {
				t.Errorf("%s: %s", path, text)
			}
		}
	}
	for path, kind := range map[string]Kind{
		"/mutate-load-balancer-driver": Driver, "/mutate-load-balancer": LoadBalancer, "/mutate-backend-broup": BackendGroup, "/mutate-backend-group": BackendGroup, "/mutate-bind": Bind,
	} {
		object := edited(t, kind, `{metadata: {finalizers: null, labels: null}, spec: {webhooks: null}}`)
		code, got, text := newClinic(Answer{}).post(t, path, reviewOf(create, object, nil))
		if code != http.StatusOK || !got.Response.Allowed || got.Response.UID != "uid-7" || got.Response.PatchType == nil || *got.Response.PatchType != "JSONPatch" || len(got.Response.Patch) == 0 {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if want := Mutate(Request{Kind: kind, Operation: create, Object: object}); want.Patch == nil {
			t.Errorf("%s: the object needs no patch", path)
		}
		if _, got, text := newClinic(Answer{}).post(t, path, reviewOf(create, []byte(`{"spec":7}`), nil)); got.Response.Allowed || got.Response.Patch != nil {
			t.Errorf("%s: %s", path, text)
		}
	}
	if n := len((&Handler{}).Routes()); n != 9 {
		t.Errorf("%d paths", n)
	}
}

// lbcf §6.1: an API server from before v1 gets its own version back.
func TestAnswersAreOfTheVersionThatAsked(t *testing.T) {
	review := reviewOf(create, edited(t, Driver, ""), nil)
	review.APIVersion = "admission.k8s.io/v1beta1"
	if _, got, text := newClinic(Answer{}).post(t, PathValidateDriver, review); got.APIVersion != "admission.k8s.io/v1beta1" || !got.Response.Allowed {
		t.Error(text)
	}
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	wrong := reviewOf(create, edited(t, Driver, ""), nil)
	wrong.APIVersion = "admission.k8s.io/v2"
	empty := reviewOf(create, nil, nil)
	empty.Request = nil
	for name, c := range map[string]struct {
		body any
		code int
	}{
		"no JSON": {[]byte("x"), 400}, "nothing": {[]byte{}, 400}, "another kind": {[]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"Pod","request":{}}`), 400},
		"another version": {wrong, 400}, "no request": {empty, 400}, "too large": {bytes.Repeat([]byte(" "), maxBodyBytes+1), 413},
	} {
		if code, _, text := newClinic(Answer{}).post(t, PathValidateDriver, c.body); code != c.code {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	w := httptest.NewRecorder()
	(&Handler{}).Routes()[PathValidateBind].ServeHTTP(w, httptest.NewRequest(http.MethodGet, PathValidateBind, nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d", w.Code)
	}
}

// L8, G9, B8: what a driver says decides; all messages are told.
func TestDriversHaveTheLastWord(t *testing.T) {
	bind := edited(t, Bind, `{spec: {loadBalancers: [{name: a, driver: clb, spec: {a: b}}, {name: b, driver: dry, spec: {a: b}}]}}`)
	c := newClinic(Answer{Succ: false, Msg: "port 443 belongs to tenant blue"})
	_, got, text := c.post(t, PathValidateBind, reviewOf(create, bind, nil))
	if got.Response.Allowed || len(c.asked) != 4 || strings.Count(got.Response.Result.Message, "belongs to tenant blue") != 4 ||
		!strings.Contains(text, "driver dry, validateBackend of load balancer b: refused: port 443") {
		t.Errorf("%d calls: %s", len(c.asked), text)
	}
	c = newClinic(Answer{Succ: true})
	if _, got, text = c.post(t, PathValidateBind, reviewOf(create, bind, nil)); !got.Response.Allowed || len(c.asked) != 4 {
		t.Errorf("%d calls: %s", len(c.asked), text)
	}
	c = newClinic(Answer{Succ: true})
	if _, got, _ = c.post(t, PathValidateLoadBalancer, reviewOf(create, edited(t, LoadBalancer, `{spec: {scope: [x]}}`), nil)); got.Response.Allowed || len(c.asked) != 0 {
		t.Errorf("a driver was asked about what is wrong anyway")
	}
}

// L8, G9, B8 and 11.4 #35.
func TestADriverThatIsAwayRefusesUnlessToldOtherwise(t *testing.T) {
	away := Answer{Err: errors.New("connection refused")}
	object, changed := edited(t, LoadBalancer, ""), edited(t, LoadBalancer, `{spec: {attributes: {algo: maglev}}}`)
	for name, c := range map[string]struct {
		review  *admissionv1.AdmissionReview
		by      Rules
		answer  Answer
		allowed bool
		words   string
	}{
		"create":             {reviewOf(create, object, nil), Rules{}, away, false, "no answer: connection refused: see that the driver runs at http://192.0.2.7:8080/hooks"},
		"update":             {reviewOf(update, changed, object), Rules{}, away, false, "no answer"},
		"fail":               {reviewOf(create, object, nil), Rules{DriverAway: Fail}, away, false, "no answer"},
		"warn":               {reviewOf(create, object, nil), Rules{DriverAway: Warn}, away, true, "no answer, let through"},
		"warn, refused":      {reviewOf(create, object, nil), Rules{DriverAway: Warn}, Answer{Msg: "no"}, false, "refused: no"},
		"unchanged":          {reviewOf(update, object, object), Rules{}, away, true, "no answer, let through"},
		"unchanged, refused": {reviewOf(update, object, object), Rules{}, Answer{Msg: "no"}, false, "refused: no"},
	} {
		clinic := newClinic(c.answer)
		clinic.Rules = c.by
		_, got, text := clinic.post(t, PathValidateLoadBalancer, c.review)
		if got.Response.Allowed != c.allowed || !strings.Contains(text, c.words) || c.allowed != (len(got.Response.Warnings) == 1) {
			t.Errorf("%s: %s", name, text)
		}
	}
	d := Validate(request(t, LoadBalancer, create, object, nil), town(), Rules{})
	if got := Judge(d, nil, Rules{}); got.Denied == "" {
		t.Error("allowed without an answer")
	}
}

// `kubectl apply --dry-run=server` reaches drivers only as what it is.
func TestDryRunRequestsAreToldToDrivers(t *testing.T) {
	dryRun := true
	for driver, calls := range map[string]int{"dry": 1, "clb": 0} {
		c := newClinic(Answer{Succ: true})
		review := reviewOf(create, edited(t, LoadBalancer, fmt.Sprintf(`{spec: {lbDriver: %s}}`, driver)), nil)
		review.Request.DryRun = &dryRun
		_, got, text := c.post(t, PathValidateLoadBalancer, review)
		if !got.Response.Allowed || len(c.asked) != calls || len(got.Response.Warnings) != 1-calls || slices.ContainsFunc(c.asked, func(c Call) bool { return !c.DryRun }) {
			t.Errorf("%s: %v %s", driver, c.asked, text)
		}
	}
}

// INV-24: what is not known is not taken for nothing.
func TestWithoutAViewNothingIsAllowedThatNeedsOne(t *testing.T) {
	const deleting = `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`
	const draining = `{metadata: {labels: {lbcf.tkestack.io/driver-draining: "true"}}}`
	for name, c := range map[string]struct {
		path    string
		kind    Kind
		op      admissionv1.Operation
		edit    string
		allowed bool
	}{
		"LoadBalancer":               {PathValidateLoadBalancer, LoadBalancer, create, "", false},
		"LoadBalancer, finalizer":    {PathValidateLoadBalancer, LoadBalancer, update, deleting, true},
		"LoadBalancer, deletion":     {PathValidateLoadBalancer, LoadBalancer, remove, "", true},
		"group":                      {PathValidateBackendGroup, BackendGroup, update, "", false},
		"driver":                     {PathValidateDriver, Driver, create, "", true},
		"driver, deletion":           {PathValidateDriver, Driver, remove, draining, false},
		"Bind":                       {PathValidateBind, Bind, create, "", false},
		"Bind, same spec":            {PathValidateBind, Bind, update, "", true},
		"driver, mutation":           {PathMutateDriver, Driver, create, "", true},
		"group, misspelt, as always": {PathMutateBackendGroupOld, BackendGroup, create, "", true},
	} {
		clinic := newClinic(Answer{Succ: true})
		clinic.View = func(context.Context) (View, error) { return nil, errors.New("LoadBalancers were not listed yet") }
		object := edited(t, c.kind, c.edit)
		review := reviewOf(c.op, object, object)
		if c.op == remove {
			review.Request.Object.Raw = nil
		}
		_, got, text := clinic.post(t, c.path, review)
		if got.Response.Allowed != c.allowed || !c.allowed && !strings.Contains(text, "cannot be judged yet: LoadBalancers were not listed yet: try again") || len(clinic.asked) > 0 {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// lbcf §6.1: writes of the status are not judged, were they ever sent.
func TestSubresourcesAreNotJudged(t *testing.T) {
	review := reviewOf(update, edited(t, LoadBalancer, `{spec: {lbDriver: ""}}`), edited(t, LoadBalancer, ""))
	review.Request.SubResource = "status"
	if _, got, text := newClinic(Answer{}).post(t, PathValidateLoadBalancer, review); !got.Response.Allowed {
		t.Error(text)
	}
}

// What the API server asks is counted by path and verdict, and timed.
func TestRequestsAreCountedByPathAndVerdict(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("they are registered twice")
	}
	away := Answer{Err: errors.New("away")}
	for _, do := range []struct {
		rules  Rules
		driver Answer
		path   string
		review any
	}{
		{Rules{}, Answer{Succ: true}, PathValidateLoadBalancer, reviewOf(create, edited(t, LoadBalancer, ""), nil)},
		{Rules{}, away, PathValidateLoadBalancer, reviewOf(create, edited(t, LoadBalancer, ""), nil)},
		{Rules{DriverAway: Warn}, away, PathValidateLoadBalancer, reviewOf(create, edited(t, LoadBalancer, ""), nil)},
		{Rules{}, Answer{}, PathMutateBackendGroupOld, reviewOf(create, edited(t, BackendGroup, ""), nil)},
		{Rules{}, Answer{}, PathMutateBackendGroupOld, []byte("{")},
	} {
		c := newClinic(do.driver)
		c.Rules, c.Metrics = do.rules, metrics
		c.post(t, do.path, do.review)
	}
	const want = `
# HELP fairlead_admission_requests_total Requests of the API server about objects of outside load balancers, and policies, by path and verdict.
# TYPE fairlead_admission_requests_total counter
fairlead_admission_requests_total{path="/mutate-backend-broup",verdict="allowed"} 1
fairlead_admission_requests_total{path="/mutate-backend-broup",verdict="unreadable"} 1
fairlead_admission_requests_total{path="/validate-load-balancer",verdict="allowed"} 1
fairlead_admission_requests_total{path="/validate-load-balancer",verdict="denied"} 1
fairlead_admission_requests_total{path="/validate-load-balancer",verdict="warned"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "fairlead_admission_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "fairlead_admission_seconds"); n != 2 || err != nil {
		t.Errorf("%d paths are timed, %v", n, err)
	}
}
