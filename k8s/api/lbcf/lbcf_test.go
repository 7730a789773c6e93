// SPDX-License-Identifier: Apache-2.0

package lbcf_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// lbcf §1.4
func TestDriversOfThePrefixLiveInKubeSystem(t *testing.T) {
	for _, c := range []struct{ driver, namespace, want string }{
		{"lbcf-clb", "shop", "kube-system"},
		{"lbcf-clb", "kube-system", "kube-system"},
		{"clb", "shop", "shop"},
		{"lbcf", "shop", "shop"},
		{"my-lbcf-clb", "shop", "shop"},
	} {
		if got := lbcf.DriverNamespace(c.driver, c.namespace); got != c.want {
			t.Errorf("driver %s named in %s: %s, want %s", c.driver, c.namespace, got, c.want)
		}
	}
}

// lbcf §1.4
func TestLoadBalancersOfThePrefixAreLookedForAtHomeFirst(t *testing.T) {
	for _, c := range []struct {
		lb, namespace string
		want          []string
	}{
		{"lbcf-edge", "shop", []string{"shop", "kube-system"}},
		{"lbcf-edge", "kube-system", []string{"kube-system"}},
		{"edge", "shop", []string{"shop"}},
	} {
		if got := lbcf.LoadBalancerNamespaces(c.lb, c.namespace); !slices.Equal(got, c.want) {
			t.Errorf("load balancer %s named in %s: %v, want %v", c.lb, c.namespace, got, c.want)
		}
	}
}

// lbcf §1.4
func TestAScopeCountsAlone(t *testing.T) {
	for _, c := range []struct {
		scope     []string
		namespace string
		want      bool
	}{
		{nil, "kube-system", true},
		{nil, "shop", false},
		{[]string{}, "kube-system", true},
		{[]string{"shop"}, "shop", true},
		{[]string{"shop"}, "kube-system", false},
		{[]string{"blog", "*"}, "shop", true},
	} {
		lb := &v1beta1.LoadBalancer{Spec: v1beta1.LoadBalancerSpec{Scope: c.scope}}
		lb.Namespace = "kube-system"
		if got := lbcf.MayUse(lb, c.namespace); got != c.want {
			t.Errorf("scope %q, namespace %s: %t, want %t", c.scope, c.namespace, got, c.want)
		}
	}
}

// lbcf §2.1, §2.2
func TestLabelsOfUsers(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "True": true, "TRUE": true, "yes": false, "": false} {
		if lbcf.IsDraining(map[string]string{lbcf.LabelDraining: value}) != want {
			t.Errorf("draining label %q: draining is %t", value, !want)
		}
	}
	if lbcf.IsProtected(nil) || !lbcf.IsProtected(map[string]string{lbcf.LabelDoNotDelete: ""}) {
		t.Error("protection is not by the key of the label alone")
	}
}

// lbcf §2.3, §13: a group that was never submitted again means what it meant.
func TestOldFieldsOfStoredGroupsCount(t *testing.T) {
	eighty, name := int32(80), "old"
	for _, c := range []struct {
		what string
		pods v1beta1.PodBackends
		want []v1beta1.PortSelector
	}{
		{"none", v1beta1.PodBackends{}, nil},
		{"port", v1beta1.PodBackends{Port: &v1beta1.PortSelector{PortNumber: &eighty}}, []v1beta1.PortSelector{{Port: 80, Protocol: "TCP"}}},
		{"port last", v1beta1.PodBackends{Port: &v1beta1.PortSelector{Port: 80}, Ports: []v1beta1.PortSelector{{Port: 53, Protocol: "UDP"}}},
			[]v1beta1.PortSelector{{Port: 53, Protocol: "UDP"}, {Port: 80, Protocol: "TCP"}}},
		{"port is there already", v1beta1.PodBackends{Port: &v1beta1.PortSelector{PortNumber: &eighty}, Ports: []v1beta1.PortSelector{{Port: 80, Protocol: "TCP"}}},
			[]v1beta1.PortSelector{{Port: 80, Protocol: "TCP"}}},
		{"same number, other protocol", v1beta1.PodBackends{Port: &v1beta1.PortSelector{Port: 80}, Ports: []v1beta1.PortSelector{{Port: 80, Protocol: "UDP"}}},
			[]v1beta1.PortSelector{{Port: 80, Protocol: "UDP"}, {Port: 80, Protocol: "TCP"}}},
		{"port wins over portNumber", v1beta1.PodBackends{Ports: []v1beta1.PortSelector{{Port: 81, PortNumber: &eighty}}}, []v1beta1.PortSelector{{Port: 81, Protocol: "TCP"}}},
	} {
		if got := lbcf.PodPorts(&c.pods); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	g := &v1beta1.BackendGroupSpec{LBName: &name}
	if got := lbcf.LoadBalancers(g); !slices.Equal(got, []string{"old"}) {
		t.Errorf("only lbName: %v", got)
	}
	g.LoadBalancers = []string{"new", "old"}
	if got := lbcf.LoadBalancers(g); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("lbName among them: %v", got)
	}
	if got := lbcf.TypeOf(g); got != lbcf.Static {
		t.Errorf("a group that selects nothing is %s", got)
	}
}

// lbcf §2.3, §4.3, §3.1: what holds where nothing was said.
func TestDefaults(t *testing.T) {
	word := func(s string) *string { return &s }
	for stored, want := range map[*string]string{nil: "IfNotReady", word("IfNotRunning"): "IfNotRunning", word("Webhook"): "Webhook", word("Never"): "IfNotReady"} {
		if got := lbcf.DeregisterPolicy(stored); got != want {
			t.Errorf("deregister policy: %s, want %s", got, want)
		}
	}
	for stored, want := range map[*v1beta1.DeregisterWebhook]string{
		nil: "DoNothing", {}: "DoNothing", {FailurePolicy: word("IfNotReady")}: "IfNotReady",
		{FailurePolicy: word("IfNotRunning")}: "IfNotRunning", {FailurePolicy: word("Webhook")}: "DoNothing",
	} {
		if got := lbcf.FailurePolicy(stored); got != want {
			t.Errorf("failure policy: %s, want %s", got, want)
		}
	}
	half, ten := &metav1.Duration{Duration: 30 * time.Second}, int32(10)
	for stored, want := range map[*v1beta1.EnsurePolicy]time.Duration{
		nil: 0, {Policy: "IfNotSucc"}: 0, {Policy: "always", MinPeriod: half}: 0, {Policy: "Always"}: time.Minute, {Policy: "Always", MinPeriod: half}: 30 * time.Second,
		lbcf.RecordPolicy(&v1.EnsurePolicy{Policy: "Always", ResyncPeriodInSeconds: &ten}): 10 * time.Second,
		lbcf.RecordPolicy(&v1.EnsurePolicy{Policy: "Always"}):                              time.Minute,
		lbcf.RecordPolicy(&v1.EnsurePolicy{Policy: "sometimes"}):                           0,
	} {
		if got := lbcf.Period(stored); got != want {
			t.Errorf("period of %v: %s, want %s", stored, got, want)
		}
	}
	if got := lbcf.RecordPolicy(&v1.EnsurePolicy{Policy: "sometimes"}); got.Policy != "IfNotSucc" {
		t.Errorf("records of a Bind have the policy %s", got.Policy) // lbcf §2.4
	}
	d := &v1beta1.LoadBalancerDriver{Spec: v1beta1.LoadBalancerDriverSpec{Webhooks: []v1beta1.WebhookConfig{
		{Name: lbcf.EnsureBackend, Timeout: half}, {Name: lbcf.EnsureBackend}, {Name: lbcf.CreateLoadBalancer}}}}
	for webhook, want := range map[string]time.Duration{lbcf.EnsureBackend: 30 * time.Second, lbcf.CreateLoadBalancer: 10 * time.Second, lbcf.Healthz: 10 * time.Second} {
		if got := lbcf.Timeout(d, webhook); got != want {
			t.Errorf("timeout of %s: %s, want %s", webhook, got, want)
		}
	}
}

// lbcf §2.4
func TestLabelsOfRecordsDifferByOwner(t *testing.T) {
	r := &v1beta1.BackendRecordSpec{LBName: "edge", LBDriver: "clb", PodBackend: &v1beta1.PodBackendRecord{Name: "web-0"}}
	want := "lbcf.tkestack.io/backend-group=g,lbcf.tkestack.io/backend-pod=web-0,lbcf.tkestack.io/lb-driver=clb,lbcf.tkestack.io/lb-name=edge"
	if got := joined(lbcf.GroupRecordLabels("g", r)); got != want {
		t.Errorf("of a group: %s", got)
	}
	want = "lbcf.tkestack.io/bind=b,lbcf.tkestack.io/driver=clb,lbcf.tkestack.io/lb=edge,lbcf.tkestack.io/pod=web-0"
	if got := joined(lbcf.BindRecordLabels("b", r)); got != want {
		t.Errorf("of a Bind: %s", got)
	}
	r = &v1beta1.BackendRecordSpec{LBName: "edge", LBDriver: "clb", ServiceBackend: &v1beta1.ServiceBackendRecord{Name: "web"}}
	want = "lbcf.tkestack.io/backend-group=g,lbcf.tkestack.io/backend-service=web,lbcf.tkestack.io/lb-driver=clb,lbcf.tkestack.io/lb-name=edge"
	if got := joined(lbcf.GroupRecordLabels("g", r)); got != want {
		t.Errorf("of a Service: %s", got)
	}
}

// lbcf §2.4: LBCF could make no record of what has a long name.
func TestLabelsAreLegalWhateverTheNames(t *testing.T) {
	name := rapid.OneOf(rapid.StringMatching(`[a-z0-9.-]{0,70}`), rapid.Just(strings.Repeat("a", 64)), rapid.String())
	testkit.Check(t, func(t *rapid.T) {
		r := &v1beta1.BackendRecordSpec{LBName: name.Draw(t, "lb"), LBDriver: name.Draw(t, "driver"), PodBackend: &v1beta1.PodBackendRecord{Name: name.Draw(t, "pod")}}
		for _, labels := range []map[string]string{lbcf.GroupRecordLabels(name.Draw(t, "group"), r), lbcf.BindRecordLabels(name.Draw(t, "bind"), r), lbcf.GroupLabels([]string{r.LBName, r.LBDriver})} {
			for key, value := range labels {
				if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
					t.Fatalf("%s=%s: %v", key, value, wrong)
				}
			}
		}
	})
}

// lbcf §2.4
func TestOwnersOfRecords(t *testing.T) {
	g, b := &v1beta1.BackendGroup{}, &v1.Bind{}
	g.Name, g.UID, b.Name, b.UID = "web", "1", "shop", "2"
	for _, c := range []struct {
		ref         metav1.OwnerReference
		apiVersion  string
		kind, owner string
	}{
		{lbcf.GroupOwner(g), "lbcf.tkestack.io/v1beta1", "BackendGroup", "web"},
		{lbcf.BindOwner(b), "lbcf.tkestack.io/v1", "Bind", "shop"},
	} {
		if c.ref.APIVersion != c.apiVersion || c.ref.Kind != c.kind || c.ref.Name != c.owner || !*c.ref.Controller || !*c.ref.BlockOwnerDeletion {
			t.Errorf("%+v", c.ref)
		}
	}
}

func joined(labels map[string]string) string {
	var all []string
	for key, value := range labels {
		all = append(all, key+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
