// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// shelf is a View of what a test puts there.
type shelf struct {
	drivers []*v1beta1.LoadBalancerDriver
	lbs     []*v1beta1.LoadBalancer
	groups  []*v1beta1.BackendGroup
	records []*v1beta1.BackendRecord
	binds   []*v1.Bind
}

func (s *shelf) Driver(namespace, name string) *v1beta1.LoadBalancerDriver {
	for _, d := range s.drivers {
		if d.Namespace == namespace && d.Name == name {
			return d
		}
	}
	return nil
}

func (s *shelf) LoadBalancer(namespace, name string) *v1beta1.LoadBalancer {
	for lb := range s.LoadBalancers(namespace) {
		if lb.Name == name {
			return lb
		}
	}
	return nil
}

func (s *shelf) LoadBalancers(ns string) iter.Seq[*v1beta1.LoadBalancer]   { return in(ns, s.lbs) }
func (s *shelf) BackendGroups(ns string) iter.Seq[*v1beta1.BackendGroup]   { return in(ns, s.groups) }
func (s *shelf) BackendRecords(ns string) iter.Seq[*v1beta1.BackendRecord] { return in(ns, s.records) }
func (s *shelf) Binds(ns string) iter.Seq[*v1.Bind]                        { return in(ns, s.binds) }

func in[P metav1.Object](namespace string, all []P) iter.Seq[P] {
	return func(yield func(P) bool) {
		for _, o := range all {
			if (namespace == "" || o.GetNamespace() == namespace) && !yield(o) {
				return
			}
		}
	}
}

// town has drivers and load balancers in namespace shop, and shared ones.
func town() *shelf {
	s := &shelf{}
	driver := func(namespace, name string, edit func(*v1beta1.LoadBalancerDriver)) {
		d := of[v1beta1.LoadBalancerDriver](driverText)
		d.Namespace, d.Name = namespace, name
		if edit != nil {
			edit(d)
		}
		s.drivers = append(s.drivers, d)
	}
	driver("shop", "clb", nil)
	driver("shop", "dry", func(d *v1beta1.LoadBalancerDriver) { d.Spec.AcceptDryRunCall = true })
	driver("kube-system", "lbcf-clb", nil)
	driver("shop", "draining", func(d *v1beta1.LoadBalancerDriver) {
		d.Labels = map[string]string{"lbcf.tkestack.io/driver-draining": "True"}
	})
	driver("shop", "leaving", func(d *v1beta1.LoadBalancerDriver) { d.DeletionTimestamp = &metav1.Time{} })
	lb := func(namespace, name, driver string, edit func(*v1beta1.LoadBalancer)) {
		l := of[v1beta1.LoadBalancer](lbText)
		l.Namespace, l.Name, l.Spec.LBDriver = namespace, name, driver
		l.Status.LBInfo = map[string]string{"id": name}
		if edit != nil {
			edit(l)
		}
		s.lbs = append(s.lbs, l)
	}
	lb("shop", "edge", "clb", nil)
	lb("shop", "dry", "dry", nil)
	lb("shop", "on-draining", "draining", nil)
	lb("shop", "on-leaving", "leaving", nil)
	lb("shop", "orphan", "nobody", nil)
	lb("shop", "leaving", "clb", func(l *v1beta1.LoadBalancer) { l.DeletionTimestamp = &metav1.Time{} })
	lb("blog", "theirs", "clb", nil)
	lb("kube-system", "lbcf-edge", "lbcf-clb", func(l *v1beta1.LoadBalancer) { l.Spec.Scope = []string{"shop"} })
	lb("kube-system", "lbcf-theirs", "lbcf-clb", func(l *v1beta1.LoadBalancer) { l.Spec.Scope = []string{"blog"} })
	lb("shop", "lbcf-old", "clb", nil) // from when any namespace might use the prefix
	lb("kube-system", "lbcf-old", "nobody", nil)
	return s
}

const driverText = `
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: clb, namespace: shop}
spec:
  driverType: Webhook
  url: http://192.0.2.7:8080/hooks
  webhooks:
  - {name: healthz, timeout: 10s}
  - {name: validateLoadBalancer, timeout: 10s}
  - {name: createLoadBalancer, timeout: 10s}
  - {name: ensureLoadBalancer, timeout: 10s}
  - {name: deleteLoadBalancer, timeout: 10s}
  - {name: validateBackend, timeout: 10s}
  - {name: generateBackendAddr, timeout: 10s}
  - {name: ensureBackend, timeout: 10s}
  - {name: deregisterBackend, timeout: 1m}
`

const lbText = `
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: edge, namespace: shop, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec:
  lbDriver: clb
  lbSpec: {vip: 198.51.100.20}
  attributes: {algo: rr}
`

const groupText = `
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata:
  name: web
  namespace: shop
  labels: {lbcf.tkestack.io/lb-name: edge, name.lb.lbcf.tkestack.io/edge: "True"}
spec:
  loadBalancers: [edge]
  pods:
    ports: [{port: 8080, protocol: TCP}]
    byLabel: {selector: {app: web}}
  parameters: {weight: "50"}
  deregisterPolicy: IfNotReady
`

const bindText = `
apiVersion: lbcf.tkestack.io/v1
kind: Bind
metadata: {name: shop, namespace: shop, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec:
  loadBalancers:
  - {name: edge-a, driver: clb, spec: {vip: 198.51.100.21}, attributes: {algo: rr}}
  pods:
    ports: [{port: 8080, protocol: tcp}]
    byLabel: {selector: {app: web}}
  parameters: {weight: "50"}
`

func textOf(k Kind) string {
	return map[Kind]string{Driver: driverText, LoadBalancer: lbText, BackendGroup: groupText, Bind: bindText}[k]
}

func of[T any](text string) *T {
	out := new(T)
	if err := yaml.Unmarshal([]byte(text), out); err != nil {
		panic(err)
	}
	return out
}

// edited is an object of a kind with a merge patch (RFC 7386) in YAML on it, as JSON.
func edited(t testing.TB, k Kind, edit string) []byte {
	t.Helper()
	o, err := yaml.YAMLToJSON([]byte(textOf(k)))
	if err != nil {
		t.Fatal(err)
	}
	if edit == "" {
		return o
	}
	e, err := yaml.YAMLToJSON([]byte(edit))
	if err != nil {
		t.Fatal(err)
	}
	if o, err = jsonpatch.MergePatch(o, e); err != nil {
		t.Fatal(err)
	}
	return o
}

// request asks about an object as the API server does: its name and namespace are in the request too.
func request(t testing.TB, k Kind, op admissionv1.Operation, object, old []byte) Request {
	t.Helper()
	r := Request{Kind: k, Operation: op}
	switch op {
	case admissionv1.Create:
		r.Object = object
	case admissionv1.Update:
		r.Object, r.Old = object, old
	case admissionv1.Delete:
		r.Old = object
	}
	var o metav1.PartialObjectMetadata
	for _, text := range [][]byte{r.Old, r.Object} {
		if len(text) > 0 {
			_ = json.Unmarshal(text, &o) // what cannot be read has no name
		}
	}
	r.Namespace, r.Name = o.Namespace, o.Name
	return r
}

// row is one case of a rule.
type row struct {
	rule   string // of the specification
	what   string
	op     admissionv1.Operation
	edit   string // merge patch of the object
	old    string // merge patch of the stored object, of an update
	denied string // a part of the denial; allowed if empty
	warn   string // a part of a warning
	calls  string // what is asked of drivers
	by     Rules
	view   func(*shelf)
}

func run(t *testing.T, k Kind, rows []row) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.rule+" "+c.what, func(t *testing.T) {
			view := town()
			if c.view != nil {
				c.view(view)
			}
			r := request(t, k, c.op, edited(t, k, c.edit), edited(t, k, c.old))
			got := Validate(r, view, c.by)
			if c.denied == "" && got.Denied != "" || !strings.Contains(got.Denied, c.denied) {
				t.Errorf("denied: %q, not %q", got.Denied, c.denied)
			}
			if warnings := strings.Join(got.Warnings, "\n"); c.warn == "" && warnings != "" || !strings.Contains(warnings, c.warn) {
				t.Errorf("warnings: %q, not %q", warnings, c.warn)
			}
			if calls := tell(got.Calls); calls != c.calls {
				t.Errorf("calls:\n%s\nnot:\n%s", calls, c.calls)
			}
			if got.Denied != "" && !strings.HasPrefix(got.Denied, string(k)+" ") {
				t.Errorf("the denial does not name its object: %s", got.Denied)
			}
		})
	}
}

// tell writes calls on a line each.
func tell(calls []Call) string {
	var lines []string
	for _, c := range calls {
		line := fmt.Sprintf("%s/%s %s", c.Driver.Namespace, c.Driver.Name, c.Webhook())
		if q := c.LoadBalancer; q != nil {
			line += fmt.Sprintf(" %s spec=%v attributes=%v old=%v", q.Operation, q.LBSpec, q.Attributes, q.OldAttributes)
		}
		if q := c.Backend; q != nil {
			line += fmt.Sprintf(" %s %s info=%v parameters=%v old=%v", q.Operation, q.BackendType, q.LBInfo, q.Parameters, q.OldParameters)
		}
		if c.DryRun {
			line += " dry-run"
		}
		if c.Lenient {
			line += " lenient"
		}
		lines = append(lines, strings.ReplaceAll(line, "map[]", "-"))
	}
	return strings.Join(lines, "\n")
}

const (
	create = admissionv1.Create
	update = admissionv1.Update
	remove = admissionv1.Delete
)
