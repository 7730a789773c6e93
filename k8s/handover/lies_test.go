// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/handover"
)

// lister is an API server whose lists are empty, and which answers for the one Deployment by its name.
func lister(t *testing.T, byName http.HandlerFunc) *handover.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/deployments/lbcf-controller"):
			byName(w, r)
		case strings.HasSuffix(r.URL.Path, "/deployments"):
			answerJSON(w, http.StatusOK, &appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}})
		default:
			answerJSON(w, http.StatusOK, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}})
		}
	}))
	t.Cleanup(server.Close)
	api, err := client.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := handover.In(api)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func answerJSON(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// lbcf §13: a server with empty caches answers lists, and LBCF runs all the same.
func TestAListThatLacksLBCFIsNotBelieved(t *testing.T) {
	deployment := func(labels map[string]string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			answerJSON(w, http.StatusOK, &appsv1.Deployment{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lbcf-controller", Labels: labels},
			})
		}
	}
	refusal := func(code int32, reason metav1.StatusReason) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			answerJSON(w, int(code), &metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: code,
			})
		}
	}
	for name, c := range map[string]struct {
		byName http.HandlerFunc
		want   []handover.Deployment
		err    string
	}{
		"there":     {deployment(nil), []handover.Deployment{{Name: "lbcf-controller", Wanted: 1}}, ""},
		"ours":      {deployment(map[string]string{"app.kubernetes.io/part-of": "fairlead"}), nil, ""},
		"gone":      {refusal(http.StatusNotFound, metav1.StatusReasonNotFound), nil, ""},
		"not-told":  {refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), nil, "get deployment kube-system/lbcf-controller"},
		"forbidden": {refusal(http.StatusForbidden, metav1.StatusReasonForbidden), nil, "get deployment kube-system/lbcf-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			seen, err := lister(t, c.byName).Look(t.Context())
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want one that contains %q", err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(seen.Deployments, c.want) {
				t.Errorf("saw %+v, %v; want %+v", seen.Deployments, err, c.want)
			}
		})
	}
}
