// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
)

// FuzzReviews posts to each path: what is a review is answered, with its own UID, a reason where it is refused, and a patch that fits
// where there is one; what is none is refused as a request.
func FuzzReviews(f *testing.F) {
	paths := slices.Sorted(maps.Keys((&Handler{}).Routes()))
	for i := range paths {
		for _, kind := range []Kind{Driver, LoadBalancer, BackendGroup, Bind} {
			object := edited(f, kind, `{metadata: {finalizers: null, labels: null}, spec: {webhooks: null}}`)
			for _, op := range []admissionv1.Operation{create, admissionv1.Update, admissionv1.Delete} {
				body, err := json.Marshal(reviewOf(op, object, edited(f, kind, "")))
				if err != nil {
					f.Fatal(err)
				}
				f.Add(uint8(i), body)
			}
		}
	}
	f.Add(uint8(0), []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"operation":"CREATE","object":null}}`))
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		at := paths[int(path)%len(paths)]
		w := httptest.NewRecorder()
		newClinic(Answer{Succ: true}).Routes()[at].ServeHTTP(w, httptest.NewRequest(http.MethodPost, at, bytes.NewReader(body)))
		if w.Code == http.StatusBadRequest {
			return
		}
		var asked, said admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &asked); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s (%v)", at, w.Code, w.Body, err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.Response == nil || said.Response.UID != asked.Request.UID {
			t.Fatalf("%s: %s (%v)", at, w.Body, err)
		}
		r := said.Response
		if !r.Allowed && (r.Result == nil || r.Result.Message == "" || r.Patch != nil) {
			t.Fatalf("%s: refused without a word, or with a patch: %s", at, w.Body)
		}
		if r.Patch == nil {
			return
		}
		patch, err := jsonpatch.DecodePatch(r.Patch)
		if err != nil {
			t.Fatalf("%s: %s: %v", at, r.Patch, err)
		}
		if _, err := patch.Apply(asked.Request.Object.Raw); err != nil {
			t.Fatalf("%s: %s onto %s: %v", at, r.Patch, asked.Request.Object.Raw, err)
		}
	})
}
