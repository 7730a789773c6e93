// SPDX-License-Identifier: Apache-2.0

package tokenreview_test

import (
	"errors"
	"strings"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"fairlead.io/fairlead/e2e/kubetest"
	fairlead "fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/tokenreview"
)

func TestErrorsDoNotTellTheToken(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	r := tokenreview.Reviewer{Reviews: client.AuthenticationV1().TokenReviews(), Audience: "fairlead"}
	_, err := r.Review(t.Context(), "a.secret.token")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "review token: ") {
		t.Fatalf("got %v", err)
	}
}

// A real API server tells the node of a token that is bound to a Pod, and only of one for our audience.
func TestRealAPIServerTellsTheNodeOfAToken(t *testing.T) {
	cluster := kubetest.Start(t, kubetest.Options{})
	ctx := t.Context()
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	const namespace, account = "kube-system", "fairlead-agent"
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: account}}, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1"}}, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods(namespace).Create(ctx, &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: "agent-1"},
		Spec: core.PodSpec{
			ServiceAccountName: account, NodeName: "n1", Containers: []core.Container{{Name: "agent", Image: "fairlead"}},
		},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token := func(audience string, bound *authentication.BoundObjectReference) string {
		t.Helper()
		answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authentication.TokenRequest{
			Spec: authentication.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: bound},
		}, meta.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Token
	}
	ofPod := &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	shipped, err := fairlead.New(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	r := tokenreview.Reviewer{Reviews: shipped.Client.AuthenticationV1().TokenReviews(), Audience: "fairlead"}
	for name, c := range map[string]struct {
		token         string
		authenticated bool
		node          string
	}{
		"bound":          {token("fairlead", ofPod), true, "n1"},
		"unbound":        {token("fairlead", nil), true, ""},
		"other-audience": {token("vault", ofPod), false, ""},
		"garbage":        {"a.b.c", false, ""},
	} {
		got, err := r.Review(ctx, c.token)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Authenticated != c.authenticated || got.Node != c.node {
			t.Errorf("%s: %+v", name, got)
		}
		if c.authenticated && (got.Username != "system:serviceaccount:kube-system:fairlead-agent" || len(got.Audiences) != 1 || got.Audiences[0] != "fairlead") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
