// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/takeover"
)

// The records of testdata/installation.yaml.
const (
	podRecord     = "shop/8e37c738700571d3078073269cf4474d"
	serviceRecord = "shop/9dec47b899848c0710a44430d89a77f7"
	staticRecord  = "shop/5bb99806547e6e97a86eabf25a3477df"
	bindRecord    = "shop/0cff09f67c766bcc54c9095760c51ef4"
)

// installation reads the one in testdata, with its pod.
func installation(t testing.TB) *takeover.Installation {
	t.Helper()
	text, err := os.ReadFile("testdata/installation.yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := &takeover.Installation{Pods: map[types.NamespacedName]takeover.Pod{{Namespace: "shop", Name: "web-0"}: {
		UID: "5b0c1b6e-2f0a-4d53-9a51-0d9c5d1f7a10", IP: "10.244.1.17", Labels: map[string]string{"app": "web"}, Ready: true, Running: true,
	}}}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		object, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = json.Unmarshal(object, &kind)
		}
		if err != nil {
			t.Fatal(err)
		}
		switch kind.Kind {
		case "LoadBalancerDriver":
			in.Drivers = more(t, in.Drivers, object)
		case "LoadBalancer":
			in.LoadBalancers = more(t, in.LoadBalancers, object)
		case "BackendGroup":
			in.Groups = more(t, in.Groups, object)
		case "BackendRecord":
			in.Records = more(t, in.Records, object)
		case "Bind":
			in.Binds = more(t, in.Binds, object)
		default:
			t.Fatalf("kind %q", kind.Kind)
		}
	}
	return in
}

func more[T any](t testing.TB, list []T, object []byte) []T {
	t.Helper()
	var one T
	if err := json.Unmarshal(object, &one); err != nil {
		t.Fatal(err)
	}
	return append(list, one)
}

func names() takeover.Names {
	return takeover.Names{
		Pod: balancers.PodRecord, Service: balancers.ServiceRecord, Static: balancers.StaticRecord,
		Bind: balancers.BindRecord, Apart: balancers.Apart,
	}
}

// record finds one of the records to change it.
func record(in *takeover.Installation, name string) *v1beta1.BackendRecord {
	i := slices.IndexFunc(in.Records, func(r v1beta1.BackendRecord) bool { return "shop/"+r.Name == name })
	return &in.Records[i]
}

func group(in *takeover.Installation, name string) *v1beta1.BackendGroup {
	i := slices.IndexFunc(in.Groups, func(g v1beta1.BackendGroup) bool { return g.Name == name })
	return &in.Groups[i]
}

// pod changes the pod.
func pod(in *takeover.Installation, change func(*takeover.Pod)) {
	key := types.NamespacedName{Namespace: "shop", Name: "web-0"}
	p := in.Pods[key]
	change(&p)
	in.Pods[key] = p
}

func text(s string) *string { return &s }

// lbcf §13: registered, unchanged backends are adopted without a call; legacy fields and nulls count by their effect.
func TestRegisteredUnchangedRecordsAreAdopted(t *testing.T) {
	r := takeover.Judge(*installation(t), nil, names())
	if len(r.Records) != 4 || r.Count()[takeover.Adopted] != 4 {
		t.Errorf("%+v", r.Records)
	}
	for _, lb := range r.LoadBalancers {
		if lb.State != takeover.Created || lb.Then != "nothing is called" {
			t.Errorf("%+v", lb)
		}
	}
	if want := []takeover.Group{{Name: "shop/static-bg", Records: 1, Adopted: 1}, {Name: "shop/svc-bg", Records: 1, Adopted: 1}, {Name: "shop/web-bg", Records: 1, Adopted: 1}}; !slices.Equal(r.Groups, want) {
		t.Errorf("groups %+v", r.Groups)
	}
	// lbcf §13: old drivers lack healthz, which is default in memory.
	if d := r.Drivers[0]; !slices.Equal(d.Missing, []string{"healthz"}) {
		t.Errorf("driver %+v", d)
	}
	if len(r.Findings) != 0 {
		t.Errorf("findings %+v", r.Findings)
	}
}

// What becomes of a record follows from what its owner wants now (lbcf §2.4.2, §5, §13).
func TestVerdictsOnRecords(t *testing.T) {
	now := metav1.Now()
	type in = takeover.Installation
	for name, c := range map[string]struct {
		change func(*in)
		record string
		want   takeover.Verdict
		why    string
	}{
		"deleting":            {func(i *in) { record(i, podRecord).DeletionTimestamp = &now }, podRecord, takeover.Deregistered, "being deleted"},
		"deleting-no-address": {func(i *in) { r := record(i, podRecord); r.DeletionTimestamp = &now; r.Status.BackendAddr = "" }, podRecord, takeover.Released, "being deleted"},
		"no-finalizer":        {func(i *in) { record(i, podRecord).Finalizers = nil }, podRecord, takeover.LeftAlone, "no finalizer"},
		"no-owner":            {func(i *in) { record(i, podRecord).OwnerReferences = nil }, podRecord, takeover.Deregistered, "no owner"},
		"owner-gone":          {func(i *in) { i.Groups = nil }, podRecord, takeover.Deregistered, "BackendGroup is gone"},
		"owner-made-anew":     {func(i *in) { group(i, "web-bg").UID = "g-9" }, podRecord, takeover.Deregistered, "BackendGroup is gone"},
		"bind-gone":           {func(i *in) { i.Binds = nil }, bindRecord, takeover.Deregistered, "Bind is gone"},
		"owner-deleting":      {func(i *in) { group(i, "web-bg").DeletionTimestamp = &now }, podRecord, takeover.Deregistered, "being deleted"},
		"not-registered":      {func(i *in) { record(i, podRecord).Status.Conditions = nil }, podRecord, takeover.Ensured, "not registered"},
		"registration-failed": {func(i *in) { record(i, podRecord).Status.Conditions[0].Status = "False" }, podRecord, takeover.Ensured, "not registered"},
		"no-address":          {func(i *in) { record(i, podRecord).Status = v1beta1.BackendRecordStatus{} }, podRecord, takeover.Ensured, "no address"},
		"parameters":          {func(i *in) { group(i, "web-bg").Spec.Parameters["weight"] = "60" }, podRecord, takeover.Ensured, "weight"},
		"empty-is-null": {func(i *in) {
			record(i, podRecord).Spec.Parameters = nil
			group(i, "web-bg").Spec.Parameters = map[string]string{}
		}, podRecord, takeover.Adopted, ""},
		"attributes":     {func(i *in) { i.LoadBalancers[0].Spec.Attributes = map[string]string{"mode": "http"} }, staticRecord, takeover.Ensured, "mode"},
		"other-identity": {func(i *in) { i.LoadBalancers[0].Status.LBInfo["id"] = "lb-9" }, podRecord, takeover.Renewed, "lbInfo"},
		"other-driver":   {func(i *in) { i.LoadBalancers[0].Spec.LBDriver = "lbcf-other" }, podRecord, takeover.Renewed, "lbcf-other"},
		"other-driver-early": {func(i *in) {
			i.LoadBalancers[0].Spec.LBDriver = "lbcf-other"
			record(i, podRecord).Status = v1beta1.BackendRecordStatus{}
		}, podRecord, takeover.Ensured, "lbcf-other"},
		"spec-is-identity": {func(i *in) {
			i.LoadBalancers[0].Status.LBInfo = nil
			record(i, podRecord).Spec.LBInfo = map[string]string{"id": "lb-1"}
		}, podRecord, takeover.Adopted, ""},
		"lb-gone":            {func(i *in) { i.LoadBalancers = nil }, podRecord, takeover.Deregistered, "LoadBalancer is gone"},
		"lb-not-named":       {func(i *in) { group(i, "web-bg").Spec.LBName = nil }, podRecord, takeover.Deregistered, "does not name"},
		"lb-deleting":        {func(i *in) { i.LoadBalancers[0].DeletionTimestamp = &now }, podRecord, takeover.Deregistered, "LoadBalancer is being deleted"},
		"lb-out-of-scope":    {func(i *in) { i.LoadBalancers[0].Spec.Scope = []string{"other"} }, podRecord, takeover.Deregistered, "scope"},
		"entry-gone":         {func(i *in) { i.Binds[0].Spec.LoadBalancers = nil }, bindRecord, takeover.Deregistered, "does not list"},
		"pod-gone":           {func(i *in) { i.Pods = nil }, podRecord, takeover.Deregistered, "pod is gone"},
		"pod-made-anew":      {func(i *in) { pod(i, func(p *takeover.Pod) { p.UID = "other" }) }, podRecord, takeover.Deregistered, "its name would be"},
		"pod-anew-in-bind":   {func(i *in) { pod(i, func(p *takeover.Pod) { p.UID = "other" }) }, bindRecord, takeover.Adopted, ""},
		"pod-moved-in-bind":  {func(i *in) { pod(i, func(p *takeover.Pod) { p.IP = "10.244.1.18" }) }, bindRecord, takeover.Deregistered, "its name would be"},
		"pod-moved-in-group": {func(i *in) { pod(i, func(p *takeover.Pod) { p.IP = "10.244.1.18" }) }, podRecord, takeover.Adopted, ""},
		"pod-relabelled":     {func(i *in) { pod(i, func(p *takeover.Pod) { p.Labels = nil }) }, podRecord, takeover.Deregistered, "not selected"},
		"pod-excepted":       {func(i *in) { group(i, "web-bg").Spec.Pods.ByLabel.Except = []string{"web-0"} }, podRecord, takeover.Deregistered, "not selected"},
		"pod-not-ready":      {func(i *in) { pod(i, func(p *takeover.Pod) { p.Ready = false }) }, podRecord, takeover.Deregistered, "not ready"},
		"pod-kept": {func(i *in) {
			pod(i, func(p *takeover.Pod) { p.Ready = false })
			group(i, "web-bg").Spec.DeregisterPolicy = text("IfNotRunning")
		}, podRecord, takeover.Adopted, ""},
		"pod-judged": {func(i *in) {
			pod(i, func(p *takeover.Pod) { p.Ready = false })
			group(i, "web-bg").Spec.DeregisterPolicy = text("Webhook")
		}, podRecord, takeover.Asked, "judgePodDeregister"},
		"pod-deleting": {func(i *in) {
			pod(i, func(p *takeover.Pod) { p.Deleting = true })
			group(i, "web-bg").Spec.DeregisterPolicy = text("IfNotRunning")
		}, podRecord, takeover.Deregistered, "pod is being deleted"},
		"port-gone":      {func(i *in) { i.Binds[0].Spec.Pods.Ports[0].Protocol = "tcp" }, bindRecord, takeover.Deregistered, "port"},
		"service-port":   {func(i *in) { group(i, "svc-bg").Spec.Service.Port.Port = 81 }, serviceRecord, takeover.Deregistered, "its name would be"},
		"periodic":       {func(*in) {}, serviceRecord, takeover.Adopted, "ensured every 1m30s"},
		"policy":         {func(i *in) { group(i, "svc-bg").Spec.EnsurePolicy = nil }, serviceRecord, takeover.Ensured, "ensure policy"},
		"policy-of-bind": {func(i *in) { i.Binds[0].Spec.EnsurePolicy = &v1.EnsurePolicy{Policy: "Always"} }, bindRecord, takeover.Ensured, "ensure policy"},
		"address-gone":   {func(i *in) { group(i, "static-bg").Spec.Static = nil }, staticRecord, takeover.Deregistered, "address"},
		"another-kind":   {func(i *in) { g := group(i, "web-bg"); g.Spec.Static, g.Spec.Pods = []string{"a"}, nil }, podRecord, takeover.Deregistered, "another kind"},
		"shared-removed": {func(i *in) { i.LoadBalancers[0].Namespace = "kube-system" }, podRecord, takeover.Deregistered, "gone"}, // lbcf §1.4: its name has no prefix
	} {
		t.Run(name, func(t *testing.T) {
			installed := installation(t)
			c.change(installed)
			r := takeover.Judge(*installed, nil, names())
			i := slices.IndexFunc(r.Records, func(r takeover.Record) bool { return r.Name == c.record })
			if i < 0 || r.Records[i].Verdict != c.want || !strings.Contains(r.Records[i].Why, c.why) {
				t.Errorf("%+v; want %s, %q", r.Records, c.want, c.why)
			}
		})
	}
}

// lbcf §1.3, §5.8: what becomes of load balancers.
func TestWhatBecomesOfLoadBalancers(t *testing.T) {
	now := metav1.Now()
	type in = takeover.Installation
	for name, c := range map[string]struct {
		change func(*in)
		lb     string
		state  takeover.State
		then   string
	}{
		"not-created":   {func(i *in) { i.LoadBalancers[0].Status = v1beta1.LoadBalancerStatus{} }, "shop/edge-web", takeover.NotCreated, "createLoadBalancer"},
		"deleting":      {func(i *in) { i.LoadBalancers[0].DeletionTimestamp = &now }, "shop/edge-web", takeover.Deleting, "deleteLoadBalancer"},
		"not-synced":    {func(i *in) { i.LoadBalancers[0].Status.Conditions[1].Status = "False" }, "shop/edge-web", takeover.Created, "ensureLoadBalancer"},
		"entry":         {func(i *in) { i.Binds[0].Status.LoadBalancerStatuses = nil }, "shop/shop/edge-a", takeover.NotCreated, "createLoadBalancer"},
		"entry-changed": {func(i *in) { i.Binds[0].Spec.LoadBalancers[0].Attributes = map[string]string{"a": "b"} }, "shop/shop/edge-a", takeover.Created, "ensureLoadBalancer"},
		"entry-left":    {func(i *in) { i.Binds[0].Spec.LoadBalancers = nil }, "shop/shop/edge-a", takeover.Deleting, "left the Bind"},
		"never-created": {func(i *in) {
			i.Binds[0].Spec.LoadBalancers = nil
			i.Binds[0].Status.LoadBalancerStatuses[0].Conditions = nil
		}, "shop/shop/edge-a", takeover.Deleting, "without a call"},
		"bind-deleting": {func(i *in) { i.Binds[0].DeletionTimestamp = &now }, "shop/shop/edge-a", takeover.Deleting, "deleteLoadBalancer"},
	} {
		t.Run(name, func(t *testing.T) {
			installed := installation(t)
			c.change(installed)
			r := takeover.Judge(*installed, nil, names())
			i := slices.IndexFunc(r.LoadBalancers, func(lb takeover.LoadBalancer) bool { return lb.Name == c.lb })
			if i < 0 || r.LoadBalancers[i].State != c.state || !strings.Contains(r.LoadBalancers[i].Then, c.then) {
				t.Errorf("%+v; want %s, %q", r.LoadBalancers, c.state, c.then)
			}
		})
	}
}

// lbcf §2, §11: what LBCF let in is told, with what comes of it.
func TestObjectsThatOnlyLBCFToleratedAreFound(t *testing.T) {
	type in = takeover.Installation
	for name, c := range map[string]struct {
		change       func(*in)
		object, what string
	}{
		"illegal-policy": {func(i *in) { i.Binds[0].Spec.DeregisterPolicy = text("Never") }, "Bind shop/shop", `deregister policy "Never"`},
		"webhook-policy": {func(i *in) { i.Binds[0].Spec.DeregisterPolicy = text("Webhook") }, "Bind shop/shop", "deregister policy Webhook"},
		"illegal-selector": {func(i *in) {
			i.Binds[0].Spec.Pods.ByLabel = &v1beta1.SelectPodByLabel{Selector: map[string]string{"a b": "c"}}
		}, "Bind shop/shop", "a b=c"},
		"illegal-port": {func(i *in) { i.Binds[0].Spec.Pods.Ports = []v1.PortSelector{{Port: 70000}} }, "Bind shop/shop", "70000"},
		"no-url":       {func(i *in) { i.Drivers[0].Spec.URL = "" }, "LoadBalancerDriver kube-system/lbcf-clb", "url"},
		"password":     {func(i *in) { i.Drivers[0].Spec.URL = "http://u:pw@driver.kube-system.svc" }, "LoadBalancerDriver kube-system/lbcf-clb", "password"},
		"other-scheme": {func(i *in) { i.Drivers[0].Spec.URL = "unix:///run/x" }, "LoadBalancerDriver kube-system/lbcf-clb", "url"},
		"twice": {func(i *in) {
			i.Drivers[0].Spec.Webhooks = append(i.Drivers[0].Spec.Webhooks, i.Drivers[0].Spec.Webhooks[0])
		}, "LoadBalancerDriver kube-system/lbcf-clb", "twice"},
		"negative-timeout": {func(i *in) { i.Drivers[0].Spec.Webhooks[0].Timeout.Duration = -1 }, "LoadBalancerDriver kube-system/lbcf-clb", "timeout"},
		"no-driver":        {func(i *in) { i.Drivers = nil }, "LoadBalancer shop/edge-web", "kube-system/lbcf-clb is not there"},
		"unknown-ensure":   {func(i *in) { group(i, "web-bg").Spec.EnsurePolicy = &v1beta1.EnsurePolicy{Policy: "Often"} }, "BackendGroup shop/web-bg", `"Often"`},
		"unreadable":       {func(i *in) { i.Unreadable = []takeover.Finding{{Object: "Bind a/b", What: "cannot be read"}} }, "Bind a/b", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			installed := installation(t)
			c.change(installed)
			r := takeover.Judge(*installed, nil, names())
			if !slices.ContainsFunc(r.Findings, func(f takeover.Finding) bool { return f.Object == c.object && strings.Contains(f.What, c.what) }) {
				t.Errorf("%+v; want %s: %s", r.Findings, c.object, c.what)
			}
		})
	}
}

// A report does not depend on the order in which objects are read.
func TestPropertyReportsDoNotDependOnOrder(t *testing.T) {
	whole := takeover.Judge(*installation(t), nil, names())
	testkit.Check(t, func(r *rapid.T) {
		in := installation(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		random.Shuffle(len(in.Records), func(a, b int) { in.Records[a], in.Records[b] = in.Records[b], in.Records[a] })
		random.Shuffle(len(in.Groups), func(a, b int) { in.Groups[a], in.Groups[b] = in.Groups[b], in.Groups[a] })
		if got := takeover.Judge(*in, nil, names()); !reflect.DeepEqual(got, whole) {
			r.Fatalf("got %+v, want %+v", got, whole)
		}
	})
}
