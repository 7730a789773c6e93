// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/e2e/kubetest"
)

const component = "../../../deploy/components/balancing/"

// policies are those of a cluster whose API server asks a member.
type policies struct {
	cluster *kubetest.Cluster
	client  dynamic.Interface
}

// newPolicies has the member work with the rights that we ship, and no others.
func newPolicies(t *testing.T, change ...func(*config.Controller)) *policies {
	t.Helper()
	cluster := kubetest.Start(t, kubetest.Options{NoControllers: true})
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	p := &policies{cluster, client}
	account := shippedAccount(t, cluster)
	if err := cluster.ApplyFiles(t.Context(), component+"crds/*.yaml"); err != nil {
		t.Fatal(err)
	}
	k := &shop{client}
	for _, file := range []string{"lbcf.tkestack.io_loadbalancerdrivers", "lbcf.tkestack.io_loadbalancers", "lbcf.tkestack.io_backendgroups", "lbcf.tkestack.io_backendrecords", "lbcf.tkestack.io_binds"} {
		k.install(t, "apiextensions.k8s.io", "customresourcedefinitions", objects(t, "../../../deploy/crds/"+file+".yaml")...)
	}
	address := judging(t, account, config.Admission{PolicyConflict: "refuse"}, change...)
	for _, o := range objects(t, component+"webhooks.yaml") {
		k.install(t, "admissionregistration.k8s.io", strings.ToLower(o.GetKind())+"s", at(t, o, address))
	}
	kubetest.Eventually(t, "policies of both kinds judged", func(ctx context.Context) error {
		for _, kind := range []string{"BalancingPolicy", "LocalRedirectPolicy"} {
			backend := "endpointSelector: {}, toPorts: [{name: p, port: \"1\", protocol: TCP}]"
			if kind == "BalancingPolicy" {
				backend = "serviceEndpoint: {" + backend + "}"
			}
			err := p.write(ctx, `{apiVersion: balancing.elf.io/v1beta1, kind: `+kind+`, metadata: {name: x}, spec: {frontend: {addressMatcher: {ip: 127.0.0.1, toPorts: [{name: p, port: "1", protocol: TCP}]}}, backend: {`+backend+`}}}`, true)
			if err == nil || !strings.Contains(err.Error(), kind+" x: spec.frontend.addressMatcher.ip: 127.0.0.1 is a loopback address") {
				return fmt.Errorf("not judged: %w", errors.Join(err))
			}
		}
		return nil
	})
	return p
}

// shippedAccount has the rights of deploy/base and of the component, and no others; in kube-system, where overlays put it.
func shippedAccount(t *testing.T, cluster *kubetest.Cluster) (kubeconfig string) {
	t.Helper()
	rights, err := os.ReadFile("../../../deploy/base/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(rights), "\n---\n")
	for i, d := range docs {
		if strings.Contains(d, "\nkind: Role") || strings.HasPrefix(d, "kind: Role") {
			docs[i] = strings.Replace(d, "metadata: {name: fairlead-controller}", "metadata: {name: fairlead-controller, namespace: kube-system}", 1)
		}
	}
	docs = append(docs, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: fairlead-controller, namespace: kube-system}}")
	if err := cluster.Apply(t.Context(), strings.Join(docs, "\n---\n")); err != nil {
		t.Fatal(err)
	}
	if err := cluster.ApplyFiles(t.Context(), component+"rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	if kubeconfig, err = cluster.KubeconfigForAccount(t.Context(), "kube-system", "fairlead-controller"); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func (p *policies) of(kind string) dynamic.ResourceInterface {
	return p.client.Resource(schema.GroupVersionResource{Group: "balancing.elf.io", Version: "v1beta1",
		Resource: map[string]string{"BalancingPolicy": "balancingpolicies", "LocalRedirectPolicy": "localredirectpolicies"}[kind]})
}

// write creates or changes a policy, or looks whether it could be.
func (p *policies) write(ctx context.Context, text string, dryRun bool) error {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: "test", Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := p.of(o.GetKind()).Apply(ctx, o.GetName(), o, options)
	return err
}

// The whole way with nothing of it replaced but the Service: a real API server with the component that we ship asks a real
// member, which the leader has told it to trust. Sections 2.3, 3 and 24.13, 24.18.
func TestTheAPIServerHasPoliciesJudged(t *testing.T) {
	t.Parallel()
	p := newPolicies(t)
	text, err := os.ReadFile("../../../k8s/api/balancing/testdata/accepted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range strings.Split(string(text), "\n---\n") {
		if err := p.write(t.Context(), d, false); err != nil {
			t.Error(err)
		}
	}
	ids := map[string]string{}
	for _, kind := range []string{"BalancingPolicy", "LocalRedirectPolicy"} {
		all, err := p.of(kind).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all.Items {
			id := o.GetAnnotations()["balancing.elf.io/serviceId"]
			if id == "" || id == "0" || ids[id] != "" {
				t.Errorf("%s has id %q, as %s", o.GetName(), id, ids[id])
			}
			ids[id] = o.GetName()
		}
	}
	if len(ids) != 7 || ids["31007"] != "legacy-db" || ids["4294967295"] != "web-proxies" {
		t.Errorf("ids %v", ids)
	}
	dns, _, _ := strings.Cut(string(text), "\n---\n")
	for name, c := range map[string]struct{ from, to, why string }{
		"A1":         {"metadata: {name: dns-local}", "metadata: {name: two, annotations: {balancing.elf.io/serviceId: \"31007\"}}", "31007 is the id of BalancingPolicy legacy-db"},
		"A6":         {"- {name: t, port: \"5353\"", "- {name: q, port: \"5354\", protocol: UDP}\n    - {name: t, port: \"5353\"", "toPorts[1].name"},
		"A8":         {"- {name: q, port: \"5353\"", "- {name: r, port: \"5353\"", `no port of the backend is named "q"`},
		"A13":        {"metadata: {name: dns-local}", "metadata: {name: two}", "Service kube-system/kube-dns is captured by LocalRedirectPolicy dns-local"},
		"A2":         {"serviceName: kube-dns", "serviceName: dns", "cannot change"},
		"A1 removed": {"metadata: {name: dns-local}", "metadata: {name: dns-local, annotations: {balancing.elf.io/serviceId: \"5\"}}", `cannot become "5"`},
		"A3":         {"spec:", "spec:\n  enabled: false", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(dns, c.from) != 1 {
				t.Fatal(c.from)
			}
			changed := strings.Replace(dns, c.from, c.to, 1)
			if name == "A6" || name == "A8" { // of another policy, so that nothing else is in the way
				changed = strings.NewReplacer("name: dns-local", "name: two", "serviceName: kube-dns", "serviceName: dns").Replace(changed)
			}
			err := p.write(t.Context(), changed, false)
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want %q", err, c.why)
			}
		})
	}
	for _, kind := range []string{"BalancingPolicy", "LocalRedirectPolicy"} {
		if err := p.of(kind).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
	if err := p.write(t.Context(), dns, false); err != nil { // balancing §9: the name can be used again at once
		t.Error(err)
	}
}
