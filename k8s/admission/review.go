// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The versions of AdmissionReview that are understood; they spell the same fields.
const (
	reviewV1      = "admission.k8s.io/v1"
	reviewV1beta1 = "admission.k8s.io/v1beta1"
)

// readReview reads what the API server asks about an object of a kind.
func readReview(kind Kind, body []byte) (*admissionv1.AdmissionReview, Request, error) {
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, Request{}, fmt.Errorf("read the AdmissionReview: %w", err)
	}
	if review.APIVersion != reviewV1 && review.APIVersion != reviewV1beta1 || review.Kind != "AdmissionReview" {
		return nil, Request{}, fmt.Errorf("read the AdmissionReview: it is a %q of %q, not one of %s", review.Kind, review.APIVersion, reviewV1)
	}
	q := review.Request
	if q == nil {
		return nil, Request{}, fmt.Errorf("read the AdmissionReview: it has no request")
	}
	r := Request{Kind: kind, Operation: q.Operation, Namespace: q.Namespace, Name: q.Name,
		Object: q.Object.Raw, Old: q.OldObject.Raw, DryRun: q.DryRun != nil && *q.DryRun}
	if q.SubResource != "" {
		r.Operation = "" // never asked for; nothing is judged
	}
	return review, r, nil
}

// writeReview answers a review.
func writeReview(review *admissionv1.AdmissionReview, d Decision) ([]byte, error) {
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: d.Denied == "", Warnings: d.Warnings}
	if d.Denied != "" {
		answer.Result = &metav1.Status{Message: d.Denied}
	}
	if answer.Allowed && len(d.Patch) > 0 {
		patch, err := json.Marshal(d.Patch)
		if err != nil {
			return nil, fmt.Errorf("encode the patch of %s/%s: %w", review.Request.Namespace, review.Request.Name, err)
		}
		kind := admissionv1.PatchTypeJSONPatch
		answer.Patch, answer.PatchType = patch, &kind
	}
	return json.Marshal(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer})
}
