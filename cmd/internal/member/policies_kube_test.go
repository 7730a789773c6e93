// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/e2e/kubetest"
)

// shows waits until a policy's status has conditions, each as "Type=Status Reason", and gives the policy.
func (p *policies) shows(t *testing.T, kind, name string, conditions ...string) (shown *unstructured.Unstructured) {
	t.Helper()
	kubetest.Eventually(t, kind+" "+name+" to show "+strings.Join(conditions, ", "), func(ctx context.Context) (err error) {
		if shown, err = p.of(kind).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		have := map[string]bool{}
		for _, c := range list(shown, "status", "conditions") {
			c := c.(map[string]any)
			have[fmt.Sprintf("%s=%s %s", c["type"], c["status"], c["reason"])] = true
		}
		observed, _, _ := unstructured.NestedInt64(shown.Object, "status", "observedGeneration")
		for _, want := range conditions {
			if !have[want] || observed != shown.GetGeneration() {
				return fmt.Errorf("it shows %v of generation %d: %v", have, observed, shown.Object["status"])
			}
		}
		return nil
	})
	return shown
}

func (p *policies) create(ctx context.Context, text string) error {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		return err
	}
	_, err := p.of(o.GetKind()).Create(ctx, o, metav1.CreateOptions{})
	return err
}

const (
	webService = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{name: a, port: 80}, {name: b, port: 8080}]}}`
	apiService = `{apiVersion: v1, kind: Service, metadata: {name: api, namespace: shop}, spec: {ports: [{name: a, port: 80}]}}`
	dnsService = `{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system}, spec: {ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]}}`
)

// The whole way, with a real API server and a member that has the rights that we ship: every manifest that the specification and
// the documentation upstream show is stored, in the record, and told what became of it; changed, deleted, and made anew under its name.
// Sections 2.2, 2.3, 9, 24.12, 24.13 and 24.18.
// Rule: balancing §24.
func TestPoliciesLiveAndAreTold(t *testing.T) {
	t.Parallel()
	p := newPolicies(t, func(c *config.Controller) { c.BalancingPolicies = true })
	for _, ns := range []string{"shop", "lab"} {
		if err := p.cluster.EnsureNamespace(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{webService, apiService, dnsService} {
		if err := p.cluster.Apply(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	for i, name := range []string{"n1", "n2", "n3"} {
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"dns-cache": "on"}}
		if i > 0 { // from the start: one that comes later is put back to what the record gave the node meanwhile
			meta.Annotations = map[string]string{"balancing.elf.io/nodeId": "4242", "example.com/mine": "x"}
		}
		if _, err := p.cluster.NodeWith(t.Context(), meta, netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(ns, name, app, address string) *kubetest.Pod {
		made, err := p.cluster.Pod(t.Context(), kubetest.PodSpec{Namespace: ns, Name: name, Node: "n1", Labels: map[string]string{"app": app}, Addresses: []netip.Addr{netip.MustParseAddr(address)}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	web := pod("shop", "web-0", "web", "10.1.0.1")
	pod("lab", "web-0", "web", "10.1.0.2")
	pod("kube-system", "dns-0", "dns-cache", "10.1.0.3")

	text, err := os.ReadFile("../../../k8s/api/balancing/testdata/accepted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := map[string]string{}
	for _, d := range strings.Split(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(d), &o.Object); err != nil {
			t.Fatal(err)
		}
		manifests[o.GetName()] = d
		apply := p.create // most have no annotations at all: kubectl create sends none
		if len(manifests)%2 == 0 {
			apply = func(ctx context.Context, text string) error { return p.write(ctx, text, false) }
		}
		if err := apply(t.Context(), d); err != nil {
			t.Errorf("%s: %v", o.GetName(), err)
		}
	}

	const accepted, available, quiet = "Accepted=True Accepted", "BackendsAvailable=True Available", "Conflict=False NoConflict"
	for name, want := range map[string]struct {
		kind, counts string
		conditions   []string
	}{
		"dns-local":   {"LocalRedirectPolicy", "captures 2 backends 1", []string{accepted, available, quiet, "Programmed=False NoNodes"}},
		"legacy-db":   {"BalancingPolicy", "captures 1 backends 2", []string{accepted, available, quiet}},
		"web-pods":    {"BalancingPolicy", "captures 2 backends 2", []string{accepted, available, quiet}},
		"web-hosts":   {"BalancingPolicy", "captures 1 backends 1", []string{accepted, available, quiet}}, // both pods are on one node: balancing §6
		"dns-unnamed": {"LocalRedirectPolicy", "captures 2 backends 1", []string{accepted, available, quiet}},
		"all-ports":   {"BalancingPolicy", "captures 1 backends 1", []string{accepted, available, quiet, "Programmed=False Disabled"}},
		"web-proxies": {"BalancingPolicy", "captures 0 backends 0", []string{"Accepted=False NotCarriedOut", quiet}},
	} {
		o := p.shows(t, want.kind, name, want.conditions...)
		status := o.Object["status"].(map[string]any)
		if got := fmt.Sprintf("captures %v backends %v", status["frontends"], status["backends"]); got != want.counts {
			t.Errorf("%s: %s, want %s", name, got, want.counts)
		}
		id := o.GetAnnotations()["balancing.elf.io/serviceId"]
		for _, c := range list(o, "status", "conditions") {
			if c := c.(map[string]any); c["type"] == "Accepted" && c["status"] == "True" && !strings.Contains(fmt.Sprint(c["message"]), "as number "+id) {
				t.Errorf("%s has id %s: %v", name, id, c["message"])
			}
		}
	}
	if got := fmt.Sprint(list(p.shows(t, "BalancingPolicy", "web-pods"), "status", "pods")); got != "[map[namespace:lab ready:1 selected:1] map[namespace:shop ready:1 selected:1]]" {
		t.Errorf("pods %s", got)
	}
	untouched := p.shows(t, "LocalRedirectPolicy", "dns-unnamed")

	t.Run("ids-of-nodes", func(t *testing.T) { p.nodesBearIDs(t, nodes) })
	t.Run("conflicts", func(t *testing.T) { p.refusesSeconds(t) })
	t.Run("changes", func(t *testing.T) {
		disabled := strings.Replace(manifests["legacy-db"], "spec:", "spec:\n  enabled: false", 1)
		if err := p.write(t.Context(), disabled, false); err != nil {
			t.Fatal(err)
		}
		p.shows(t, "BalancingPolicy", "legacy-db", accepted, "Programmed=False Disabled")
		if err := p.write(t.Context(), strings.Replace(disabled, "false", "true", 1), false); err != nil {
			t.Fatal(err)
		}
		p.shows(t, "BalancingPolicy", "legacy-db", accepted, "Programmed=False NoNodes")
	})
	t.Run("services-and-pods-go", func(t *testing.T) {
		services := p.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace("kube-system")
		if err := services.Delete(t.Context(), "kube-dns", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.shows(t, "LocalRedirectPolicy", "dns-local", "Accepted=False NoService", "Programmed=False NothingCaptured")
		if err := p.cluster.Apply(t.Context(), dnsService); err != nil {
			t.Fatal(err)
		}
		p.shows(t, "LocalRedirectPolicy", "dns-local", accepted, available)
		if err := web.SetReady(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		kubetest.Eventually(t, "one pod of shop less that is ready", func(context.Context) error {
			if got := fmt.Sprint(list(p.shows(t, "BalancingPolicy", "web-pods", available), "status", "pods")); !strings.Contains(got, "map[namespace:shop ready:0 selected:1]") {
				return fmt.Errorf("pods %s", got)
			}
			return nil
		})
	})
	t.Run("anew", func(t *testing.T) {
		before := p.shows(t, "BalancingPolicy", "legacy-db")
		for _, anew := range []string{
			manifests["legacy-db"], // with its id
			strings.NewReplacer(`annotations: {balancing.elf.io/serviceId: "31007"}`, "labels: {x: z}", "10.20.0.11", "10.20.0.13").Replace(manifests["legacy-db"]),
		} {
			if err := p.of("BalancingPolicy").Delete(t.Context(), "legacy-db", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := p.create(t.Context(), anew); err != nil { // balancing §9: the name can be used again at once
				t.Fatal(err)
			}
			o := p.shows(t, "BalancingPolicy", "legacy-db", accepted, available)
			if o.GetUID() == before.GetUID() {
				t.Error("it is the same object")
			}
			before = o
		}
		if id := before.GetAnnotations()["balancing.elf.io/serviceId"]; id == "31007" || id == "" {
			t.Errorf("the other object has id %q", id)
		}
	})
	t.Run("events", func(t *testing.T) {
		events := p.client.Resource(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).Namespace("default")
		kubetest.Eventually(t, "Events on policies", func(ctx context.Context) error {
			all, err := events.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			got := map[string]bool{}
			for _, o := range all.Items {
				name, _, _ := unstructured.NestedString(o.Object, "regarding", "name")
				got[fmt.Sprintf("%s %s", name, o.Object["reason"])] = true
			}
			for _, want := range []string{"web-pods Accepted", "web-proxies NotCarriedOut", "dns-local Accepted"} {
				if !got[want] {
					return fmt.Errorf("%s was not told: %v", want, got)
				}
			}
			return nil
		})
	})
	if now := p.shows(t, "LocalRedirectPolicy", "dns-unnamed"); now.GetResourceVersion() != untouched.GetResourceVersion() {
		t.Errorf("nothing happened to it, and it was written: %v, before %v", now.Object["status"], untouched.Object["status"])
	}
}

// nodesBearIDs: each an own one, the one that it had if that is its own; others' annotations stay (balancing §2.3).
func (p *policies) nodesBearIDs(t *testing.T, nodes schema.GroupVersionResource) {
	const key = "balancing.elf.io/nodeId"
	ids := func(ctx context.Context) (map[string]string, error) {
		all, err := p.client.Resource(nodes).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		out := map[string]string{}
		for _, o := range all.Items {
			out[o.GetName()] = o.GetAnnotations()[key]
			if o.GetName() != "n1" && o.GetAnnotations()["example.com/mine"] != "x" {
				return nil, fmt.Errorf("%s lost an annotation: %v", o.GetName(), o.GetAnnotations())
			}
		}
		return out, nil
	}
	var at map[string]string
	kubetest.Eventually(t, "an id of each Node's own", func(ctx context.Context) (err error) {
		if at, err = ids(ctx); err != nil {
			return err
		}
		if at["n1"] == "" || at["n2"] == at["n3"] || at["n1"] == at["n2"] || at["n1"] == at["n3"] || at["n2"] != "4242" && at["n3"] != "4242" {
			return fmt.Errorf("ids %v", at)
		}
		return nil
	})
	if _, err := p.client.Resource(nodes).Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata": {"annotations": {"`+key+`": "9"}}}`), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the id to be back", func(ctx context.Context) error {
		if now, err := ids(ctx); err != nil || now["n1"] != at["n1"] {
			return fmt.Errorf("ids %v, before %v: %v", now, at, err)
		}
		return nil
	})
}

// refusesSeconds: a second policy of a Service or an address is refused with the name of the first, whatever their kinds (balancing §24.13).
func (p *policies) refusesSeconds(t *testing.T) {
	front := map[string]string{
		"service": "serviceMatcher: {namespace: shop, serviceName: twice, toPorts: [{name: p, port: \"80\", protocol: TCP}]}",
		"address": "addressMatcher: {ip: 169.254.99.1, toPorts: [{name: p, port: \"80\", protocol: TCP}]}",
	}
	policy := func(kind, name, front string) string {
		back := `endpointSelector: {matchLabels: {app: twice}}, toPorts: [{name: p, port: "1", protocol: TCP}]`
		if kind == "BalancingPolicy" {
			back = "serviceEndpoint: {" + back + "}"
		}
		return `{apiVersion: balancing.elf.io/v1beta1, kind: ` + kind + `, metadata: {name: ` + name + `}, spec: {frontend: {` + front + `}, backend: {` + back + `}}}`
	}
	for what, captured := range front {
		for _, first := range []string{"BalancingPolicy", "LocalRedirectPolicy"} {
			if err := p.create(t.Context(), policy(first, "first-"+what, captured)); err != nil {
				t.Fatal(err)
			}
			for _, second := range []string{"BalancingPolicy", "LocalRedirectPolicy"} {
				err := p.create(t.Context(), policy(second, "second", captured))
				if err == nil || !strings.Contains(err.Error(), first+" first-"+what) {
					t.Errorf("%s of the %s of a %s: %v", second, what, first, err)
				}
			}
			if err := p.of(first).Delete(t.Context(), "first-"+what, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
