// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// read decodes a manifest as objects of an API server are.
func read[K any](t testing.TB, manifest string) *K {
	t.Helper()
	var o K
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// fields are the severities and fields of problems.
func fields(problems []world.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, string(p.Severity)+" "+p.Field)
	}
	return out
}

func same[V any](t *testing.T, got V, problems []world.Problem, want V, wrong ...string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !slices.Equal(fields(problems), wrong) {
		t.Errorf("problems %v, want fields %v", problems, wrong)
	}
}

func id(namespace, name string) world.ID { return world.ID{Namespace: namespace, Name: name} }

func meta(namespace, name string) world.Meta { return world.Meta{ID: id(namespace, name)} }

// lbcf §2.1, §13: the first timeout of a name counts, and what is missing or makes no sense is the default.
func TestDriverHasSaneTimeoutsOnly(t *testing.T) {
	got, problems := Driver(read[v1beta1.LoadBalancerDriver](t, `
metadata: {name: lbcf-f5, namespace: kube-system, labels: {lbcf.tkestack.io/driver-draining: "TRUE"}, annotations: {fairlead.io/credentials-secret: f5, fairlead.io/settle: 90s, fairlead.io/concurrent: "4"}}
spec:
  driverType: Webhook
  url: https://f5.kube-system:8443/driver
  acceptDryRunCall: true
  webhooks:
  - {name: createLoadBalancer, timeout: 30s}
  - {name: createLoadBalancer, timeout: 40s}
  - {name: ensureBackend, timeout: -1s}
  - {name: deregisterBackend, timeout: 2m}
  - {name: healthz, timeout: 1m}
  - {name: deleteLoadBalancer}
  - {name: judgePodDeregister, timeout: 5s}
  - {name: somethingElse, timeout: 5s}
status: null
`))
	same(t, got, problems, world.Driver{
		Meta: meta("kube-system", "lbcf-f5"), URL: "https://f5.kube-system:8443/driver", AcceptsDryRun: true, Draining: true,
		Timeouts: []world.Timeout{{Webhook: "createLoadBalancer", Budget: 30 * time.Second}, {Webhook: "healthz", Budget: time.Minute},
			{Webhook: "judgePodDeregister", Budget: 5 * time.Second}},
		Secret: "f5", Settle: 90 * time.Second, Concurrent: 4,
	}, "warning spec.webhooks[1]", "warning spec.webhooks[2].timeout", "warning spec.webhooks[3].timeout", "warning spec.webhooks[7].name")
}

func TestDriverAnnotationsThatMakeNoSenseAreTheDefault(t *testing.T) {
	for key, values := range map[string][]string{
		AnnotationCredentials: {"Not A Name", "a/b"}, AnnotationSettle: {"", "30", "-1s", "0s", "2h", "soon"}, AnnotationConcurrent: {"", "0", "-1", "many", "1001", "1.5"},
	} {
		for _, v := range values {
			o := &v1beta1.LoadBalancerDriver{Spec: v1beta1.LoadBalancerDriverSpec{DriverType: "Webhook", URL: "http://driver.example"}}
			o.Name, o.Annotations = "d", map[string]string{key: v}
			got, problems := Driver(o)
			same(t, got, problems, world.Driver{Meta: meta("default", "d"), URL: "http://driver.example"}, "warning "+annotationField(key))
		}
	}
}

// lbcf §2.1 [FIX]: a URL needs a scheme and a host. Nobody can call a driver without.
func TestDriverWithoutAUsableURLIsUnusable(t *testing.T) {
	for _, url := range []string{"", "driver.example", "ftp://driver.example", "http://", "http://%zz", "//driver.example", "http:/driver"} {
		o := &v1beta1.LoadBalancerDriver{Spec: v1beta1.LoadBalancerDriverSpec{DriverType: "Webhook", URL: url}}
		o.Name = "d"
		if _, problems := Driver(o); Usable(problems) {
			t.Errorf("%q: %v", url, problems)
		}
	}
}

// What is in a URL is in the record, in its API and in logs, where viewers are: passwords stay outside.
func TestDriverIsCalledWithoutThePasswordInItsURL(t *testing.T) {
	o := &v1beta1.LoadBalancerDriver{Spec: v1beta1.LoadBalancerDriverSpec{DriverType: "Webhook", URL: "https://u:hunter2@driver.example/v1"}}
	o.Name = "d"
	got, problems := Driver(o)
	same(t, got, problems, world.Driver{Meta: meta("default", "d"), URL: "https://driver.example/v1"}, "warning spec.url")
	o.Spec.URL = "ftp://u:hunter2@driver.example"
	if _, more := Driver(o); strings.Contains(fmt.Sprint(problems, more), "hunter2") {
		t.Errorf("%v %v", problems, more)
	}
}

func TestOutsideBalancerFromManifestAndStatus(t *testing.T) {
	got, problems := OutsideBalancer(read[v1beta1.LoadBalancer](t, `
metadata: {name: lbcf-edge, namespace: kube-system, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec:
  lbDriver: lbcf-f5
  lbSpec: {vip: 198.51.100.20, port: "443"}
  attributes: {algo: maglev}
  scope: ["*"]
  ensurePolicy: {policy: Always, minPeriod: 1m30s}
status:
  lbInfo: {id: lb-1}
  conditions:
  - {type: Created, status: "True", lastTransitionTime: "2021-10-12T00:00:00Z", message: ""}
  - {type: AttributesSynced, status: "False", lastTransitionTime: null, reason: OperationFailed, message: "no"}
`))
	same(t, got, problems, world.OutsideBalancer{
		Meta: meta("kube-system", "lbcf-edge"), Driver: "lbcf-f5", DriverID: id("kube-system", "lbcf-f5"),
		Spec: []world.KV{{Key: "port", Value: "443"}, {Key: "vip", Value: "198.51.100.20"}}, Attributes: []world.KV{{Key: "algo", Value: "maglev"}},
		Scope: []string{"*"}, Ensure: world.EnsurePolicy{Policy: "Always", Period: 90 * time.Second}, Finalizer: true,
		Status: world.BalancerStatus{Info: []world.KV{{Key: "id", Value: "lb-1"}}, Created: true},
	})
}

// lbcf §2 [KEEP]: clients of LBCF send null for what is unset. §1.4 [KEEP]: lbcf- drivers live in kube-system.
func TestOutsideBalancerWithNullsAndASharedDriver(t *testing.T) {
	got, problems := OutsideBalancer(read[v1beta1.LoadBalancer](t, `
metadata: {name: web, namespace: shop}
spec: {lbDriver: lbcf-f5, lbSpec: null, attributes: null, scope: null, ensurePolicy: null}
status: {lbInfo: null, conditions: null}
`))
	same(t, got, problems, world.OutsideBalancer{Meta: meta("shop", "web"), Driver: "lbcf-f5", DriverID: id("kube-system", "lbcf-f5")})
	got, problems = OutsideBalancer(read[v1beta1.LoadBalancer](t, `
metadata: {name: web, namespace: shop, deletionTimestamp: "2021-10-12T00:00:00Z"}
spec: null
`))
	want := world.OutsideBalancer{Meta: meta("shop", "web"), DriverID: id("shop", "")}
	want.Deleting = true
	same(t, got, problems, want, "warning spec.lbDriver")
}

func TestPoliciesThatAdmissionWouldRefuseCallNobodyTooOften(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   world.EnsurePolicy
		wrong  []string
	}{
		{`{policy: Always}`, world.EnsurePolicy{Policy: "Always"}, nil},
		{`{policy: Always, minPeriod: 1ms}`, world.EnsurePolicy{Policy: "Always", Period: 30 * time.Second}, []string{"warning spec.ensurePolicy.minPeriod"}},
		{`{policy: Always, minPeriod: -5m}`, world.EnsurePolicy{Policy: "Always", Period: 30 * time.Second}, []string{"warning spec.ensurePolicy.minPeriod"}},
		{`{policy: IfNotSucc, minPeriod: 0s}`, world.EnsurePolicy{Policy: "IfNotSucc"}, nil},
		{`{policy: Sometimes}`, world.EnsurePolicy{Policy: "Sometimes"}, []string{"warning spec.ensurePolicy.policy"}},
	} {
		o := read[v1beta1.LoadBalancer](t, "{metadata: {name: web}, spec: {lbDriver: d, ensurePolicy: "+c.policy+"}}")
		got, problems := OutsideBalancer(o)
		same(t, got.Ensure, problems, c.want, c.wrong...)
	}
}

// lbcf §13: what was stored in deprecated ways, and never written since, is read with its effective values.
func TestBackendGroupOfPodsInOldAndNewForm(t *testing.T) {
	got, problems := BackendGroup(read[v1beta1.BackendGroup](t, `
metadata: {name: web, namespace: shop}
spec:
  lbName: old
  loadBalancers: [edge, lbcf-shared]
  pods:
    port: {portNumber: 8080, port: 0}
    ports: [{port: 53, protocol: UDP}, {port: 70000}, {portNumber: null, port: 0}]
    byLabel: {selector: {tier: front, app: web}, except: [web-9]}
    byName: [ignored]
  parameters: {weight: "80"}
  deregisterPolicy: Webhook
  deregisterWebhook: {driverName: lbcf-f5, failurePolicy: null}
  ensurePolicy: {policy: IfNotSucc}
`))
	same(t, got, problems, world.BackendGroup{
		Meta: meta("shop", "web"), LoadBalancers: []string{"edge", "lbcf-shared", "old"},
		Balancing: world.Balancing{
			Parameters: []world.KV{{Key: "weight", Value: "80"}}, Ensure: world.EnsurePolicy{Policy: "IfNotSucc"},
			Pods: &world.PodSelection{ByLabel: true, Selector: []world.KV{{Key: "app", Value: "web"}, {Key: "tier", Value: "front"}}, Except: []string{"web-9"},
				Ports: []world.BackendPort{{Port: 53, Protocol: "UDP"}, {Port: 8080, Protocol: "TCP"}}},
			Leave: world.LeavePolicy{Policy: world.LeaveWebhook, Driver: id("kube-system", "lbcf-f5"), Failing: world.LeaveDoNothing},
		},
	}, "warning spec.pods.ports", "warning spec.pods.ports")
}

func TestBackendGroupOfAServiceOfAddressesAndOfNothing(t *testing.T) {
	got, problems := BackendGroup(read[v1beta1.BackendGroup](t, `
metadata: {name: svc, namespace: shop}
spec: {lbName: null, loadBalancers: [edge], service: {name: web, port: {portNumber: 80, port: 0}, nodeSelector: {zone: a}}, parameters: null, deregisterPolicy: null, deregisterWebhook: null}
`))
	leave := world.LeavePolicy{Policy: world.LeaveIfNotReady}
	same(t, got, problems, world.BackendGroup{
		Meta: meta("shop", "svc"), LoadBalancers: []string{"edge"}, Balancing: world.Balancing{Leave: leave},
		Service: &world.ServiceBackends{Name: "web", Port: world.BackendPort{Port: 80, Protocol: "TCP"}, NodeSelector: []world.KV{{Key: "zone", Value: "a"}}},
	})
	got, problems = BackendGroup(read[v1beta1.BackendGroup](t, `
metadata: {name: static, namespace: shop}
spec: {loadBalancers: [edge], static: ["192.0.2.7:443", "anything"]}
`))
	same(t, got, problems, world.BackendGroup{
		Meta: meta("shop", "static"), LoadBalancers: []string{"edge"}, Balancing: world.Balancing{Leave: leave}, IsStatic: true,
		Static: []string{"192.0.2.7:443", "anything"},
	})
	// lbcf §2.3: a group with none of the three is a static one without backends.
	got, problems = BackendGroup(read[v1beta1.BackendGroup](t, `{metadata: {name: none, namespace: shop}, spec: {loadBalancers: [edge], pods: null, service: null, static: null}}`))
	same(t, got, problems, world.BackendGroup{Meta: meta("shop", "none"), LoadBalancers: []string{"edge"}, Balancing: world.Balancing{Leave: leave}, IsStatic: true})
}

// lbcf §5.4 [FIX, opt-in]: a group may leave out nodes; what it says in words that nobody knows leaves out none.
func TestBackendGroupLeavesOutNodes(t *testing.T) {
	for text, want := range map[string]struct{ ready, excluded, bad bool }{
		"": {}, "ready": {ready: true}, "not-excluded": {excluded: true}, "ready, not-excluded": {ready: true, excluded: true},
		"Ready": {bad: true}, "ready,healthy": {ready: true, bad: true}, ",": {},
	} {
		o := read[v1beta1.BackendGroup](t, `{metadata: {name: g}, spec: {loadBalancers: [edge], service: {name: web, port: {port: 80}}}}`)
		o.Annotations = map[string]string{AnnotationNodes: text}
		got, problems := BackendGroup(o)
		if got.Service.OnlyReady != want.ready || got.Service.NotExcluded != want.excluded || len(problems) > 0 != want.bad {
			t.Errorf("%q: %+v, problems %v", text, got.Service, problems)
		}
		if !Usable(problems) {
			t.Errorf("%q: the group is unusable", text)
		}
	}
}

// lbcf §2.5 [FIX], §11.1 no. 5: an illegal label selects no pod, where LBCF took every pod of the namespace.
func TestSelectorThatNoPodCanHaveSelectsNothing(t *testing.T) {
	for _, selector := range []string{`{"a b": c}`, `{app: "not a value"}`, `{}`, `null`} {
		o := read[v1.Bind](t, `{metadata: {name: b}, spec: {pods: {ports: [{port: 80, protocol: tcp}], byLabel: {selector: `+selector+`}, byName: [web-0]}}}`)
		got, problems := Bind(o)
		if p := got.Pods; p.ByLabel || p.Names != nil || p.Selector != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].Field, "spec.pods.byLabel.selector") {
			t.Errorf("%s: selects %+v, problems %v", selector, p, problems)
		}
		if !Usable(problems) {
			t.Errorf("%s: the Bind is unusable, and could never go", selector)
		}
	}
}

func TestUnknownDeregisterPoliciesAreIfNotReady(t *testing.T) {
	got, problems := Bind(read[v1.Bind](t, `{metadata: {name: b}, spec: {pods: {byName: [web-0]}, deregisterPolicy: Never, deregisterWebhook: {driverName: d}}}`))
	same(t, got.Leave, problems, world.LeavePolicy{Policy: world.LeaveIfNotReady}, "warning spec.deregisterPolicy")
	got, problems = Bind(read[v1.Bind](t, `{metadata: {name: b}, spec: {pods: {byName: [web-0]}, deregisterPolicy: Webhook}}`))
	same(t, got.Leave, problems, world.LeavePolicy{Policy: world.LeaveWebhook, Failing: world.LeaveDoNothing}, "warning spec.deregisterWebhook.driverName")
	got, problems = Bind(read[v1.Bind](t, `{metadata: {name: b}, spec: {pods: {byName: [web-0]}, deregisterPolicy: Webhook, deregisterWebhook: {driverName: d, failurePolicy: IfNotRunning}}}`))
	same(t, got.Leave, problems, world.LeavePolicy{Policy: world.LeaveWebhook, Driver: id("default", "d"), Failing: world.LeaveIfNotRunning})
}

// lbcf §2.5: ports and protocols of a Bind are as they are written, its period is in seconds, its entries have names.
func TestBindFromManifestAndStatus(t *testing.T) {
	got, problems := Bind(read[v1.Bind](t, `
metadata: {name: shop, namespace: shop, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec:
  loadBalancers:
  - {name: edge, driver: f5, spec: {vip: 198.51.100.20}, attributes: null}
  - {name: edge, driver: other, spec: {vip: 198.51.100.21}, attributes: null}
  - {name: names, driver: lbcf-dns, spec: {zone: example}, attributes: {ttl: "5"}}
  pods: {ports: [{port: 8080, protocol: tcp}, {port: 8080, protocol: TCP}], byName: [web-0]}
  parameters: null
  ensurePolicy: {policy: Always, resyncPeriodInSeconds: 20, minPeriod: 1s}
status:
  loadBalancerStatuses:
  - {name: edge, driver: f5, lbInfo: {id: lb-1}, lastSyncedAttributes: {a: b}, deletionTimestamp: null, retryAfter: null,
     conditions: [{type: Created, status: "True"}, {type: Ready, status: "True"}]}
  - {name: names, driver: lbcf-dns, deletionTimestamp: null, retryAfter: null, conditions: [{type: Created, status: "False", reason: Creating}]}
`))
	same(t, got, problems, world.Bind{
		Meta: meta("shop", "shop"), Finalizer: true,
		Balancing: world.Balancing{
			Ensure: world.EnsurePolicy{Policy: "Always", Period: 20 * time.Second}, Leave: world.LeavePolicy{Policy: world.LeaveIfNotReady},
			Pods: &world.PodSelection{Names: []string{"web-0"}, Ports: []world.BackendPort{{Port: 8080, Protocol: "tcp"}, {Port: 8080, Protocol: "TCP"}}},
		},
		Entries: []world.BindEntry{
			{Name: "edge", Driver: "f5", DriverID: id("shop", "f5"), Spec: []world.KV{{Key: "vip", Value: "198.51.100.20"}}},
			{Name: "names", Driver: "lbcf-dns", DriverID: id("kube-system", "lbcf-dns"), Spec: []world.KV{{Key: "zone", Value: "example"}},
				Attributes: []world.KV{{Key: "ttl", Value: "5"}}},
		},
		Statuses: []world.BalancerStatus{
			{Name: "edge", DriverID: id("shop", "f5"), Info: []world.KV{{Key: "id", Value: "lb-1"}}, Attributes: []world.KV{{Key: "a", Value: "b"}}, Created: true, Synced: true},
			{Name: "names", DriverID: id("kube-system", "lbcf-dns")},
		},
	}, "warning spec.loadBalancers[1].name")
}

// lbcf §2.4: everything that deregistering needs is in the record, whatever of its owner is left.
func TestBackendRecordOfEveryKindAndOwner(t *testing.T) {
	got, problems := BackendRecord(read[v1beta1.BackendRecord](t, `
metadata:
  name: 8e37c738700571d3078073269cf4474d
  namespace: shop
  finalizers: [lbcf.tkestack.io/deregister-backend]
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: other, uid: u0}
  - {apiVersion: lbcf.tkestack.io/v1beta1, kind: BackendGroup, name: web-bg, uid: u1, controller: true, blockOwnerDeletion: true}
spec:
  lbName: edge-web
  lbDriver: f5
  lbInfo: {vip: 198.51.100.20}
  lbAttributes: null
  parameters: {weight: "80"}
  podBackend: {name: web-0, port: {portNumber: 8080, port: 0}}
  ensurePolicy: {policy: Always, minPeriod: 1m0s}
status:
  backendAddr: 10.244.1.17:8080
  injectedInfo: {token: x}
  conditions: [{type: Registered, status: "True", lastTransitionTime: null, message: ok}]
`))
	want := world.BackendRecord{
		Meta: meta("shop", "8e37c738700571d3078073269cf4474d"), OwnerKind: "BackendGroup", Owner: "web-bg", OwnerUID: "u1",
		LoadBalancer: "edge-web", Driver: "f5", DriverID: id("shop", "f5"), Info: []world.KV{{Key: "vip", Value: "198.51.100.20"}},
		Parameters: []world.KV{{Key: "weight", Value: "80"}}, Ensure: world.EnsurePolicy{Policy: "Always", Period: time.Minute},
		Kind: "Pod", Name: "web-0", Port: world.BackendPort{Port: 8080, Protocol: "TCP"}, Finalizer: true,
		Address: "10.244.1.17:8080", Injected: []world.KV{{Key: "token", Value: "x"}}, Registered: true,
	}
	same(t, got, problems, want)
	got, problems = BackendRecord(read[v1beta1.BackendRecord](t, `
metadata: {name: r, namespace: shop, labels: {lbcf.tkestack.io/bind: shop}}
spec: {lbName: edge, lbDriver: f5, serviceBackend: {name: web, port: {port: 80, protocol: TCP}, nodePort: 31080, nodeName: n1}}
`))
	same(t, got, problems, world.BackendRecord{
		Meta: meta("shop", "r"), OwnerKind: "Bind", Owner: "shop", LoadBalancer: "edge", Driver: "f5", DriverID: id("shop", "f5"),
		Kind: "Service", Name: "web", Port: world.BackendPort{Port: 80, Protocol: "TCP"}, NodePort: 31080, Node: "n1",
	})
	got, problems = BackendRecord(read[v1beta1.BackendRecord](t, `{metadata: {name: r, namespace: shop}, spec: {staticAddr: "192.0.2.7:443"}, status: null}`))
	same(t, got, problems, world.BackendRecord{Meta: meta("shop", "r"), DriverID: id("shop", ""), Kind: "Static", Static: "192.0.2.7:443"},
		"warning metadata.ownerReferences")
}

// lbcf §5.1: available and running are told apart, and a pod that ended is there still.
func TestPodIsReadyAndRunningAsItSays(t *testing.T) {
	got, problems := Pod(read[corev1.Pod](t, `
metadata: {name: web-0, namespace: shop, uid: u, labels: {app: web}}
spec: {nodeName: n1}
status: {phase: Running, podIP: 10.244.1.17, conditions: [{type: ContainersReady, status: "True"}, {type: Ready, status: "False"}]}
`))
	want := world.Pod{Meta: meta("shop", "web-0"), IP: "10.244.1.17", Node: "n1", Running: true, Labels: []world.KV{{Key: "app", Value: "web"}}}
	want.UID = "u"
	same(t, got, problems, want)
	got, problems = Pod(read[corev1.Pod](t, `{metadata: {name: job, namespace: shop}, status: {phase: Succeeded, podIP: 10.244.1.18, conditions: [{type: Ready, status: "True"}]}}`))
	same(t, got, problems, world.Pod{Meta: meta("shop", "job"), IP: "10.244.1.18", Ready: true})
}

// shaped draws JSON in the shape of an object, with anything where something belongs.
func shaped(t *rapid.T) []byte {
	words := []string{"", "a", "Always", "Webhook", "30s", "-1s", "lbcf-x", "http://x", "True", "Created", "BackendGroup", "lbcf.tkestack.io/v1beta1", "a b", "\x00", "é"}
	keys := []string{"metadata", "name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "apiVersion", "kind", "controller", "spec", "status",
		"lbName", "loadBalancers", "pods", "ports", "port", "portNumber", "protocol", "byLabel", "byName", "selector", "except", "service", "static", "nodeSelector",
		"webhooks", "timeout", "url", "driverType", "lbDriver", "driver", "lbSpec", "lbInfo", "scope", "ensurePolicy", "policy", "minPeriod", "resyncPeriodInSeconds",
		"deregisterPolicy", "deregisterWebhook", "driverName", "failurePolicy", "conditions", "type", "loadBalancerStatuses", "podBackend", "serviceBackend", "staticAddr",
		"nodePort", "fairlead.io/nodes", "fairlead.io/settle", "fairlead.io/concurrent", "fairlead.io/credentials-secret", "parameters", "attributes"}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case n < 5 && depth > 0:
			m := map[string]any{}
			for range rapid.IntRange(0, 6).Draw(t, "keys") {
				m[rapid.SampledFrom(keys).Draw(t, "key")] = value(depth - 1)
			}
			return m
		case n < 6 && depth > 0:
			return []any{value(depth - 1), value(depth - 1)}
		case n == 6:
			return rapid.Int64Range(-1<<40, 1<<40).Draw(t, "number")
		case n == 7:
			return nil
		}
		return rapid.SampledFrom(words).Draw(t, "text")
	}
	b, err := json.Marshal(map[string]any{"metadata": value(3), "spec": value(5), "status": value(4)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// whole has an object be converted, as far as it can be read, and looks at what is said about it.
func whole[K, V any](t *rapid.T, raw []byte, turn func(*K) (V, []world.Problem)) {
	var o K
	_ = json.Unmarshal(raw, &o) // what could be read until then is there
	for range 2 {
		_, problems := turn(&o)
		for _, p := range problems {
			if p.Field == "" || p.Why == "" || p.Remedy == "" || p.Object.Kind == "" {
				t.Fatalf("half a problem: %+v", p)
			}
		}
	}
}

// Whatever was stored before there was a schema, conversion gives a value and whole problems.
func TestPropertyAnythingStoredIsConverted(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		raw := shaped(t)
		whole(t, raw, Driver)
		whole(t, raw, OutsideBalancer)
		whole(t, raw, BackendGroup)
		whole(t, raw, Bind)
		whole(t, raw, BackendRecord)
		whole(t, raw, Pod)
	})
}
