// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/k8s/admission"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// The whole way with nothing of it replaced but the Service: a real API server with the definitions and webhook
// configurations that we ship asks a real member, which the leader has told it to trust, and that asks a driver.
func TestTheAPIServerHasObjectsJudged(t *testing.T) {
	t.Parallel()
	k := newShop(t)
	d := newOutside(t)
	k.write(t, "loadbalancerdrivers", `
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: clb, namespace: shop}
spec: {driverType: Webhook, url: "`+d.URL+`", acceptDryRunCall: true}
`)
	if got := k.get(t, "loadbalancerdrivers", "clb"); len(list(got, "spec", "webhooks")) != 9 { // M3
		t.Errorf("webhooks: %v", list(got, "spec", "webhooks"))
	}

	const edge = `
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: edge, namespace: shop}
spec: {lbDriver: clb, lbSpec: {vip: 198.51.100.20}, attributes: {algo: rr}}
`
	k.refused(t, "loadbalancers", strings.Replace(edge, "lbDriver: clb", "lbDriver: nobody", 1), "LoadBalancer shop/edge", "nobody") // L5
	d.says(`{"succ":false,"msg":"198.51.100.20 belongs to tenant blue"}`)
	k.refused(t, "loadbalancers", edge, "driver clb", "198.51.100.20 belongs to tenant blue") // L8
	d.says(`{"succ":true}`)
	k.write(t, "loadbalancers", edge, metav1.DryRunAll)
	if asked := d.asked("validateLoadBalancer"); !strings.Contains(asked, `"dryRun":true`) {
		t.Errorf("a dry run is asked as %s", asked)
	}
	k.write(t, "loadbalancers", edge)
	if asked := d.asked("validateLoadBalancer"); !strings.Contains(asked, `"dryRun":false`) || !strings.Contains(asked, `"lbSpec":{"vip":"198.51.100.20"}`) {
		t.Errorf("asked %s", asked)
	}
	if got := k.get(t, "loadbalancers", "edge").GetFinalizers(); !slices.Equal(got, []string{"lbcf.tkestack.io/delete-load-loadbalancer"}) { // M1
		t.Errorf("finalizers %v", got)
	}

	const web = `
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: web, namespace: shop}
spec:
  lbName: edge
  pods: {port: {portNumber: 8080}, byLabel: {selector: {app: web}}}
  parameters: {weight: "100"}
`
	k.write(t, "backendgroups", web) // by the misspelt path
	group := k.get(t, "backendgroups", "web")
	spec, _, _ := unstructured.NestedMap(group.Object, "spec")
	if labels := group.GetLabels(); labels["name.lb.lbcf.tkestack.io/edge"] != "True" || spec["lbName"] != nil ||
		fmt.Sprint(spec["loadBalancers"]) != "[edge]" || spec["deregisterPolicy"] != "IfNotReady" { // M4, M5, M8
		t.Errorf("labels %v, spec %v", labels, spec)
	}
	if ports := fmt.Sprint(list(group, "spec", "pods", "ports")); ports != "[map[port:8080 protocol:TCP]]" { // M6, M7
		t.Errorf("ports %s", ports)
	}
	k.write(t, "backendgroups", strings.Replace(web, `"100"`, `"80"`, 1))
	if asked := d.asked("validateBackend"); !strings.Contains(asked, `"OldParameters":{"weight":"100"},"oldParameters":{"weight":"100"}`) {
		t.Errorf("asked %s", asked) // 3.8
	}

	d.Close()
	k.refused(t, "loadbalancers", strings.Replace(edge, "name: edge", "name: other", 1), "driver clb", "no answer", "see that the driver runs")
	if got := k.get(t, "loadbalancers", "edge"); got == nil {
		t.Error("gone")
	}
}

// outside is a driver that keeps what it is asked.
type outside struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string]string // the last one, by webhook
	answer string
}

func newOutside(t *testing.T) *outside {
	o := &outside{bodies: map[string]string{}, answer: `{"succ":true}`}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.bodies[path.Base(r.URL.Path)] = string(body)
		fmt.Fprint(w, o.answer)
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *outside) says(answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

func (o *outside) asked(webhook string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bodies[webhook]
}

// shop is a namespace of a cluster whose API server asks a member.
type shop struct{ client dynamic.Interface }

func newShop(t *testing.T) *shop {
	t.Helper()
	cluster := kubetest.Start(t, kubetest.Options{NoControllers: true})
	if err := cluster.EnsureNamespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	k := &shop{client}
	files, err := filepath.Glob("../../../deploy/crds/lbcf.tkestack.io_*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d definitions, %v", len(files), err)
	}
	for _, file := range files {
		k.install(t, "apiextensions.k8s.io", "customresourcedefinitions", objects(t, file)...)
	}
	kubetest.Eventually(t, "definitions in force", func(ctx context.Context) error {
		_, err := k.view(ctx)
		return err
	})
	address := k.judge(t, cluster.Kubeconfig())
	for _, o := range objects(t, "../../../deploy/components/admission/webhooks.yaml") {
		k.install(t, "admissionregistration.k8s.io", strings.ToLower(o.GetKind())+"s", at(t, o, address))
	}
	kubetest.Eventually(t, "a member that is asked and trusted", func(ctx context.Context) error {
		trusted := 0
		for _, kind := range []string{"validating", "mutating"} {
			all, err := k.client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: kind + "webhookconfigurations"}).
				List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=fairlead"})
			if err != nil {
				return err
			}
			for _, o := range all.Items {
				for _, w := range list(&o, "webhooks") {
					if bundle, _, _ := unstructured.NestedString(w.(map[string]any), "clientConfig", "caBundle"); bundle != "" {
						trusted++
					}
				}
			}
		}
		if trusted != 8 {
			return fmt.Errorf("%d webhooks with a CA", trusted)
		}
		// The API server takes configurations in with a delay; it has when an object is judged.
		_, err := k.create(ctx, "loadbalancers", "{apiVersion: lbcf.tkestack.io/v1beta1, kind: LoadBalancer, metadata: {name: x, namespace: shop}, spec: {}}", metav1.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "LoadBalancer shop/x") {
			return fmt.Errorf("not judged: %w", errors.Join(err))
		}
		return nil
	})
	return k
}

// at has the API server ask at an address, not at a Service: there is no network of a cluster.
func at(t *testing.T, o *unstructured.Unstructured, address string) *unstructured.Unstructured {
	t.Helper()
	webhooks := list(o, "webhooks")
	for _, w := range webhooks {
		to, _, _ := unstructured.NestedString(w.(map[string]any), "clientConfig", "service", "path")
		if to == "" {
			t.Fatalf("%s: a webhook without a path", o.GetName())
		}
		w.(map[string]any)["clientConfig"] = map[string]any{"url": "https://" + address + to}
	}
	if err := unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"); err != nil {
		t.Fatal(err)
	}
	return o
}

// judge runs a member that the API server can ask, and gives the address.
func (k *shop) judge(t *testing.T, kubeconfig string) string {
	return judging(t, kubeconfig, config.Admission{})
}

// judging runs a member that the API server can ask at 127.0.0.1, and gives the address.
func judging(t *testing.T, kubeconfig string, by config.Admission, change ...func(*config.Controller)) string {
	t.Helper()
	ca := pkitest.New(t)
	files := ca.Issue(t, pki.Request{Role: pki.Member, Name: "m1"})
	var l machine.Listeners
	for _, listener := range []*net.Listener{&l.API, &l.Raft, &l.Admission} {
		var err error
		if *listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	api, raft, admission := l.API.Addr().String(), l.Raft.Addr().String(), l.Admission.Addr().String()
	c := config.Controller{
		Name: "m1", DataDir: filepath.Join(t.TempDir(), "m1"), FloorDir: t.TempDir(), BootstrapToken: "t", Log: "error",
		Listen:  config.Listen{API: api, Raft: raft, Admission: admission},
		TLS:     config.MemberTLS{TLS: config.TLS(files), CAKey: ca.Key()},
		Members: []config.Member{{Name: "m1", API: api, Raft: raft}}, Sources: config.Sources{Kubernetes: &config.Kubernetes{Kubeconfig: kubeconfig}},
		Admission: by,
	}
	c.Admission.Names, c.Drivers.Allowed = []string{"127.0.0.1"}, []string{"127.0.0.1"}
	for _, by := range change {
		by(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	m, err := member.Open(c, "test", machine.Member(l), quiet)
	if err != nil {
		t.Fatal(err)
	}
	running(t, "member", m.Run)
	return admission
}

func (k *shop) of(resource string) dynamic.ResourceInterface {
	version := "v1beta1"
	if resource == "binds" {
		version = "v1"
	}
	return k.client.Resource(schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: version, Resource: resource}).Namespace("shop")
}

func (k *shop) install(t *testing.T, group, resource string, all ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range all {
		r := k.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
		if _, err := r.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func (k *shop) create(ctx context.Context, resource, text string, dryRun ...string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		return nil, err
	}
	return k.of(resource).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: dryRun})
}

func (k *shop) write(t *testing.T, resource, text string, dryRun ...string) {
	t.Helper()
	if _, err := k.create(t.Context(), resource, text, dryRun...); err != nil {
		t.Fatal(err)
	}
}

func (k *shop) refused(t *testing.T, resource, text string, why ...string) {
	t.Helper()
	_, err := k.create(t.Context(), resource, text)
	if err == nil {
		t.Errorf("stored: %s", text)
		return
	}
	for _, part := range append(why, "denied the request") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func (k *shop) get(t *testing.T, resource, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := k.of(resource).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func list(o *unstructured.Unstructured, fields ...string) []any {
	l, _, _ := unstructured.NestedSlice(o.Object, fields...)
	return l
}

func objects(t *testing.T, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := d.Decode(o); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case len(o.Object) > 0:
			all = append(all, o)
		}
	}
}

// shelves are what is stored, listed anew for each question.
type shelves struct {
	drivers []*v1beta1.LoadBalancerDriver
	lbs     []*v1beta1.LoadBalancer
	groups  []*v1beta1.BackendGroup
	records []*v1beta1.BackendRecord
	binds   []*v1.Bind
}

func (k *shop) view(ctx context.Context) (admission.View, error) {
	s := &shelves{}
	return s, errors.Join(
		read(ctx, k.of("loadbalancerdrivers"), &s.drivers), read(ctx, k.of("loadbalancers"), &s.lbs), read(ctx, k.of("backendgroups"), &s.groups),
		read(ctx, k.of("backendrecords"), &s.records), read(ctx, k.of("binds"), &s.binds),
	)
}

func read[T any](ctx context.Context, of dynamic.ResourceInterface, into *[]*T) error {
	all, err := of.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range all.Items {
		one := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, one); err != nil {
			return err
		}
		*into = append(*into, one)
	}
	return nil
}

func (s *shelves) Driver(_, name string) *v1beta1.LoadBalancerDriver    { return named(s.drivers, name) }
func (s *shelves) LoadBalancer(_, name string) *v1beta1.LoadBalancer    { return named(s.lbs, name) }
func (s *shelves) LoadBalancers(string) iter.Seq[*v1beta1.LoadBalancer] { return slices.Values(s.lbs) }
func (s *shelves) BackendGroups(string) iter.Seq[*v1beta1.BackendGroup] {
	return slices.Values(s.groups)
}
func (s *shelves) BackendRecords(string) iter.Seq[*v1beta1.BackendRecord] {
	return slices.Values(s.records)
}
func (s *shelves) Binds(string) iter.Seq[*v1.Bind] { return slices.Values(s.binds) }

func named[P interface {
	comparable
	metav1.Object
}](all []P, name string) (none P) {
	if i := slices.IndexFunc(all, func(o P) bool { return o.GetName() == name }); i >= 0 {
		return all[i]
	}
	return none
}
