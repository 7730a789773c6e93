// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// Section 3: the paths, each about its kind.
func TestEveryPathAnswersAboutItsKind(t *testing.T) {
	h := &Handler{Look: func(context.Context) *Stored { return town(t) }, Draw: func() uint32 { return 77 }}
	routes := h.Routes()
	local := `{metadata: {name: a, annotations: {balancing.elf.io/serviceId: "7"}}, spec: {frontend: {}, backend: {endpointSelector: {}, toPorts: []}}}`
	nameless := strings.Replace(local, `, annotations: {balancing.elf.io/serviceId: "7"}`, "", 1)
	for path, c := range map[string]struct{ object, denied, patch string }{
		"/validate-balancing-elf-io-v1beta1-balancingpolicy":     {edited(t, good, front, "{}"), "BalancingPolicy a: spec.frontend", ""},
		"/validate-balancing-elf-io-v1beta1-localredirectpolicy": {local, "LocalRedirectPolicy a: spec.backend.toPorts", ""},
		"/mutate-balancing-elf-io-v1beta1-balancingpolicy":       {edited(t, good, `, annotations: {balancing.elf.io/serviceId: "7"}`, ""), "", `"77"`},
		"/mutate-balancing-elf-io-v1beta1-localredirectpolicy":   {nameless, "", `"77"`},
	} {
		t.Run(path, func(t *testing.T) {
			body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","name":"a","object":%s}}`, raw(t, c.object))
			w := httptest.NewRecorder()
			routes[path].ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
				t.Fatalf("%d: %s", w.Code, w.Body)
			}
			a := review.Response
			if a.Allowed != (c.denied == "") || a.Result != nil && !strings.HasPrefix(a.Result.Message, c.denied) || !strings.Contains(string(a.Patch), c.patch) || (c.patch == "") != (a.Patch == nil) {
				t.Errorf("%+v %s", a, a.Patch)
			}
		})
	}
	for path, kind := range map[string]string{PathMutateBalancing: "BalancingPolicy", PathMutateLocalRedirect: "LocalRedirectPolicy"} {
		body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","name":"a","object":{"metadata":7}}}`
		w := httptest.NewRecorder()
		routes[path].ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		if !strings.Contains(w.Body.String(), `"message":"`+kind+` a: cannot read the object`) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	if len(routes) != 4 {
		t.Errorf("%d paths", len(routes))
	}
}
