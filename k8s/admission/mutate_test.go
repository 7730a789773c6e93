// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/internal/testkit"
)

// patched is an object after the patch of its request.
func patched(t interface{ Fatal(...any) }, r Request) []byte {
	d := Mutate(r)
	if d.Denied != "" {
		t.Fatal(d.Denied)
	}
	if len(d.Patch) == 0 {
		return r.Object
	}
	text, err := json.Marshal(d.Patch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Apply(r.Object)
	if err != nil {
		t.Fatal(string(text), err)
	}
	return out
}

// lbcf §6.2
func TestMutations(t *testing.T) {
	const finalizer = `{"op":"add","path":"/metadata/finalizers","value":["lbcf.tkestack.io/delete-load-loadbalancer"]}`
	both := []admissionv1.Operation{create, update}
	for _, c := range []struct {
		rule, what string
		kind       Kind
		ops        []admissionv1.Operation
		object     string // YAML
		want       string // patch
	}{
		{"M1", "no finalizers", LoadBalancer, both[:1], `{metadata: {name: a}}`, finalizer},
		{"M1", "null", LoadBalancer, both[:1], `{metadata: {name: a, finalizers: null}}`, finalizer},
		{"M1", "others", LoadBalancer, both[:1], `{metadata: {finalizers: [x]}}`, `{"op":"add","path":"/metadata/finalizers/-","value":"lbcf.tkestack.io/delete-load-loadbalancer"}`},
		{"M1", "there already", LoadBalancer, both[:1], lbText, ""},
		{"M1", "update", LoadBalancer, both[1:], `{metadata: {name: a}}`, ""},
		{"M2", "bind", Bind, both[:1], `{metadata: {name: a}}`, finalizer},
		{"M2", "update", Bind, both[1:], `{metadata: {name: a}}`, ""},
		{"M3", "all there", Driver, both, driverText, ""},
		{"M3 FIX", "one is missing, on update too", Driver, both, webhooks(", {name: nonesuch, timeout: 99s}"), `{"op":"add","path":"/spec/webhooks/-","value":{"name":"healthz","timeout":"10s"}}`},
		{"2.1 FIX", "no timeout", Driver, both, webhooks(", {name: healthz}"), `{"op":"add","path":"/spec/webhooks/8/timeout","value":"10s"}`},
		{"2.1 FIX", "null timeout", Driver, both, webhooks(", {name: healthz, timeout: null}"), `{"op":"add","path":"/spec/webhooks/8/timeout","value":"10s"}`},
		{"M3", "a timeout of 0s is said, and stays", Driver, both, webhooks(", {name: healthz, timeout: 0s}"), ""},
		{"3.2 FIX", "judgePodDeregister stays, and is not added", Driver, both, webhooks(", {name: healthz, timeout: 1s}, {name: judgePodDeregister, timeout: 1s}"), ""},
		{"M3", "no spec", Driver, both, `{metadata: {name: a}}`, ""},
		{"M4", "labels", BackendGroup, both, `{metadata: {name: a}, spec: {deregisterPolicy: IfNotReady, loadBalancers: [b, a]}}`,
			`{"op":"add","path":"/metadata/labels","value":{}} {"op":"add","path":"/metadata/labels/lbcf.tkestack.io~1lb-name","value":"b"} ` +
				`{"op":"add","path":"/metadata/labels/name.lb.lbcf.tkestack.io~1a","value":"True"} {"op":"add","path":"/metadata/labels/name.lb.lbcf.tkestack.io~1b","value":"True"}`},
		{"M4", "overwritten", BackendGroup, both, strings.Replace(groupText, "lb-name: edge", "lb-name: x", 1), `{"op":"add","path":"/metadata/labels/lbcf.tkestack.io~1lb-name","value":"edge"}`},
		{"2.3.1 FIX", "stale", BackendGroup, both, strings.Replace(groupText, "labels: {", "labels: {name.lb.lbcf.tkestack.io/gone: \"True\", mine: x, ", 1), `{"op":"remove","path":"/metadata/labels/name.lb.lbcf.tkestack.io~1gone"}`},
		{"M4", "lbName", BackendGroup, both, `{metadata: {labels: {}}, spec: {deregisterPolicy: IfNotReady, lbName: a}}`,
			`{"op":"add","path":"/metadata/labels/lbcf.tkestack.io~1lb-name","value":"a"} {"op":"add","path":"/metadata/labels/name.lb.lbcf.tkestack.io~1a","value":"True"} ` +
				`{"op":"remove","path":"/spec/lbName"} {"op":"add","path":"/spec/loadBalancers","value":["a"]}`},
		{"M5", "lbName appended", BackendGroup, both, groupTextOf("lbName: b", "loadBalancers: [edge]", `name.lb.lbcf.tkestack.io/b: "True"`),
			`{"op":"remove","path":"/spec/lbName"} {"op":"add","path":"/spec/loadBalancers/-","value":"b"}`},
		{"M5", "lbName contained", BackendGroup, both, groupTextOf("lbName: edge", "loadBalancers: [edge]", ""), `{"op":"remove","path":"/spec/lbName"}`},
		{"M5", "lbName null", BackendGroup, both, groupTextOf("lbName: null", "loadBalancers: [edge]", ""), `{"op":"remove","path":"/spec/lbName"}`},
		{"M5", "lbName in another case", BackendGroup, both, groupTextOf("LBName: edge", "loadBalancers: [edge]", ""), `{"op":"remove","path":"/spec/LBName"}`},
		{"M6", "port", BackendGroup, both, groupPods(`{port: {portNumber: 80}, byName: [a]}`), `{"op":"remove","path":"/spec/pods/port"} {"op":"add","path":"/spec/pods/ports","value":[{"port":80,"protocol":"TCP"}]}`},
		{"M6", "port appended", BackendGroup, both, groupPods(`{port: {port: 80, protocol: UDP}, ports: [{port: 80, protocol: TCP}]}`), `{"op":"remove","path":"/spec/pods/port"} {"op":"add","path":"/spec/pods/ports/-","value":{"port":80,"protocol":"UDP"}}`},
		{"M6", "port contained", BackendGroup, both, groupPods(`{port: {portNumber: 80}, ports: [{portNumber: 80}]}`),
			`{"op":"add","path":"/spec/pods/ports/0/protocol","value":"TCP"} {"op":"add","path":"/spec/pods/ports/0/port","value":80} {"op":"remove","path":"/spec/pods/ports/0/portNumber"} {"op":"remove","path":"/spec/pods/port"}`},
		{"M6", "port null", BackendGroup, both, groupPods(`{port: null, ports: [{port: 80, protocol: TCP}]}`), `{"op":"remove","path":"/spec/pods/port"}`},
		{"M7", "port wins over portNumber", BackendGroup, both, groupPods(`{ports: [{port: 81, portNumber: 80, protocol: udp}]}`), `{"op":"remove","path":"/spec/pods/ports/0/portNumber"}`},
		{"M7", "port 0", BackendGroup, both, groupPods(`{ports: [{port: 0, portNumber: 80, protocol: TCP}]}`), `{"op":"add","path":"/spec/pods/ports/0/port","value":80} {"op":"remove","path":"/spec/pods/ports/0/portNumber"}`},
		{"11.1 #6", "neither port nor portNumber", BackendGroup, both, groupPods(`{ports: [{}, null]}`), `{"op":"add","path":"/spec/pods/ports/0/protocol","value":"TCP"}`},
		{"M7", "service", BackendGroup, both, strings.Replace(groupPods("null"), "pods: null", "service: {port: {portNumber: 80, protocol: null}}", 1),
			`{"op":"add","path":"/spec/service/port/protocol","value":"TCP"} {"op":"add","path":"/spec/service/port/port","value":80} {"op":"remove","path":"/spec/service/port/portNumber"}`},
		{"M8", "no policy", BackendGroup, both, strings.Replace(groupText, "  deregisterPolicy: IfNotReady", "", 1), `{"op":"add","path":"/spec/deregisterPolicy","value":"IfNotReady"}`},
		{"M8", "null", BackendGroup, both, strings.Replace(groupText, "IfNotReady", "null", 1), `{"op":"add","path":"/spec/deregisterPolicy","value":"IfNotReady"}`},
		{"M8", "another", BackendGroup, both, strings.Replace(groupText, "IfNotReady", "IfNotRunning", 1), ""},
		{"M8", "static groups too", BackendGroup, both, `{metadata: {name: a}, spec: {static: []}}`, `{"op":"add","path":"/spec/deregisterPolicy","value":"IfNotReady"}`},
	} {
		for _, op := range c.ops {
			t.Run(c.rule+" "+c.what+" "+string(op), func(t *testing.T) {
				object, err := yaml.YAMLToJSON([]byte(c.object))
				if err != nil {
					t.Fatal(err)
				}
				r := request(t, c.kind, op, object, object)
				d := Mutate(r)
				var steps []string
				for _, step := range d.Patch {
					text, err := json.Marshal(step)
					if err != nil {
						t.Fatal(err)
					}
					steps = append(steps, string(text))
				}
				if got := strings.Join(steps, " "); got != c.want || d.Denied != "" {
					t.Errorf("%s %s\nnot %s", got, d.Denied, c.want)
				}
				r.Object = patched(t, r)
				if again := Mutate(r); len(again.Patch) > 0 {
					t.Errorf("and again: %v", again.Patch)
				}
			})
		}
	}
}

// groupTextOf is the group with other load balancers, and one label more.
func groupTextOf(lbName, loadBalancers, label string) string {
	return strings.NewReplacer("  loadBalancers: [edge]", "  "+lbName+"\n  "+loadBalancers, `edge: "True"}`, `edge: "True", `+label+`}`).Replace(groupText)
}

// groupPods is the group with other pods.
func groupPods(pods string) string {
	return `
metadata: {labels: {lbcf.tkestack.io/lb-name: edge, name.lb.lbcf.tkestack.io/edge: "True"}}
spec: {loadBalancers: [edge], deregisterPolicy: IfNotReady, pods: ` + pods + `}`
}

// D1: for every kind, by either webhook.
func TestWhatCannotBeReadIsDenied(t *testing.T) {
	for _, k := range []Kind{Driver, LoadBalancer, BackendGroup, Bind} {
		for _, object := range []string{``, `null`, `7`, `[]`, `{`, `{"spec":[]}`, `{"spec":{"ensurePolicy":{"policy":1},"url":1}}`, `{"metadata":"x"}`} {
			r := Request{Kind: k, Operation: create, Namespace: "shop", Name: "x", Object: []byte(object)}
			for what, got := range map[string]Decision{"mutate": Mutate(r), "validate": Validate(r, town(), Rules{})} {
				if !strings.HasPrefix(got.Denied, string(k)+" shop/x: ") || got.Patch != nil {
					t.Errorf("%s %s %s: %q", what, k, object, got.Denied)
				}
			}
		}
	}
}

// Unknown fields and numbers that no float holds stay as they are.
func TestMutationsKeepWhatTheyDoNotKnow(t *testing.T) {
	object := `{"metadata":{"name":"a","future":1},"future":{"n":9007199254740993},"spec":{"lbName":"a","future":[1],
		"pods":{"future":true,"ports":[{"portNumber":80,"future":9007199254740993}],"byName":["a"]}},"status":{"future":null}}`
	got := string(patched(t, Request{Kind: BackendGroup, Operation: create, Object: []byte(object)}))
	if n := strings.Count(got, `"future"`); n != 6 || strings.Count(got, "9007199254740993") != 2 {
		t.Errorf("%s", got)
	}
}

// A field that is written twice must end neither the mutation nor the member.
func TestTwoSpellingsOfAFieldAreSurvived(t *testing.T) {
	object := `{"spec":{"loadBalancers":["edge"],"pods":{"port":{"port":80}},"Pods":null}}`
	r := Request{Kind: BackendGroup, Operation: create, Namespace: "shop", Name: "web", Object: []byte(object)}
	r.Object = patched(t, r)
	Validate(r, town(), Rules{})
}

// drawGroup draws groups as users and clients of LBCF write them: in old fields and in new ones, with nulls, mostly valid.
func drawGroup(t *rapid.T) map[string]any {
	port := func(name string) any {
		p := map[string]any{}
		n := rapid.IntRange(0, 3).Draw(t, name)
		if rapid.Bool().Draw(t, name+" in the old way") {
			p["portNumber"] = n
			if rapid.Bool().Draw(t, name+" with 0") {
				p["port"] = 0
			}
		} else {
			p["port"] = n
		}
		if word := rapid.SampledFrom([]any{"", nil, "TCP", "UDP", "absent", "tcp"}).Draw(t, name+" protocol"); word != "absent" {
			p["protocol"] = word
		}
		return p
	}
	spec := map[string]any{}
	meta := map[string]any{"name": "web", "namespace": "shop"}
	if rapid.Bool().Draw(t, "has labels") {
		meta["labels"] = rapid.MapOf(rapid.SampledFrom([]string{"lbcf.tkestack.io/lb-name", "name.lb.lbcf.tkestack.io/edge", "name.lb.lbcf.tkestack.io/gone", "mine"}),
			rapid.SampledFrom([]string{"True", "edge"})).Draw(t, "labels")
	}
	names := rapid.SampledFrom([]string{"edge", "dry", "lbcf-edge", "nobody"})
	if rapid.Bool().Draw(t, "has lbName") {
		spec["lbName"] = rapid.SampledFrom([]any{nil, "edge", "dry"}).Draw(t, "lbName")
	}
	if rapid.Bool().Draw(t, "has loadBalancers") {
		spec["loadBalancers"] = rapid.SliceOfN(names, 0, 3).Draw(t, "loadBalancers")
	}
	switch rapid.SampledFrom([]string{"pods", "service", "static", "none"}).Draw(t, "backends") {
	case "pods":
		pods := map[string]any{"byName": []string{"web-0"}}
		if rapid.Bool().Draw(t, "has port") {
			pods["port"] = port("port")
		}
		if n := rapid.IntRange(-1, 2).Draw(t, "ports"); n >= 0 {
			list := []any{}
			for range n {
				list = append(list, port("one of ports"))
			}
			pods["ports"] = list
		}
		spec["pods"] = pods
	case "service":
		spec["service"] = map[string]any{"name": "web", "port": port("service port")}
	case "static":
		spec["static"] = []string{"192.0.2.1:80"}
	}
	if rapid.Bool().Draw(t, "has policy") {
		spec["deregisterPolicy"] = rapid.SampledFrom([]any{nil, "IfNotReady", "IfNotRunning"}).Draw(t, "policy")
	}
	return map[string]any{"metadata": meta, "spec": spec}
}

// lbcf §6.2: applied to what it made, it does nothing, and it changes no meaning: what was valid stays so, asks the same of
// drivers, and updating from what was to what is counts as no change.
func TestPropertyMutationIsIdempotentAndKeepsTheMeaning(t *testing.T) {
	view := town()
	drawn, valid := 0, 0
	missing := func() string {
		if valid*10 < drawn {
			return fmt.Sprintf("only %d of %d groups that were drawn are valid", valid, drawn)
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		drawn++
		object, err := json.Marshal(drawGroup(t))
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Kind: BackendGroup, Operation: create, Namespace: "shop", Name: "web", Object: object}
		after := r
		after.Object = patched(t, r)
		if again := Mutate(after); again.Denied != "" || len(again.Patch) > 0 {
			t.Fatalf("%s is patched again: %v", after.Object, again.Patch)
		}
		for _, old := range []string{"lbName", "portNumber", `"port":{"portNumber`} {
			if strings.Contains(string(after.Object), `"`+old+`"`) {
				t.Fatalf("%s still in %s", old, after.Object)
			}
		}
		was, is := Validate(r, view, Rules{}), Validate(after, view, Rules{})
		if was.Denied == "" && (is.Denied != "" || tell(was.Calls) != tell(is.Calls)) {
			t.Fatalf("%s means %s; %s means %s %s", object, tell(was.Calls), after.Object, is.Denied, tell(is.Calls))
		}
		if is.Denied != "" {
			return
		}
		valid++
		after.Operation, after.Old = update, object
		for _, c := range Validate(after, view, Rules{}).Calls {
			if !c.Lenient {
				t.Fatalf("%s is taken for a change of %s", after.Object, object)
			}
		}
	})
}

// A driver is valid once it was filled in, whatever its author listed.
func TestPropertyDriversAreValidOnceFilledIn(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		listed := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"healthz", "validateLoadBalancer", "ensureBackend", "judgePodDeregister"}), 0, 4, rapid.ID[string]).Draw(t, "listed")
		webhooks := []any{}
		for _, name := range listed {
			w := map[string]any{"name": name}
			if v := rapid.SampledFrom([]any{nil, "1s", "1m", "absent"}).Draw(t, "timeout"); v != "absent" {
				w["timeout"] = v
			}
			webhooks = append(webhooks, w)
		}
		spec := map[string]any{"driverType": "Webhook", "url": "http://192.0.2.7"}
		if v := rapid.SampledFrom([]any{webhooks, nil, "absent"}).Draw(t, "webhooks"); v != "absent" {
			spec["webhooks"] = v
		}
		object, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "d", "namespace": "shop"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Kind: Driver, Operation: create, Namespace: "shop", Name: "d", Object: object}
		r.Object = patched(t, r)
		if d := Validate(r, town(), Rules{}); d.Denied != "" {
			t.Fatalf("%s: %s", r.Object, d.Denied)
		}
		if len(Mutate(r).Patch) > 0 || strings.Contains(string(r.Object), "judgePodDeregister") != strings.Contains(string(object), "judgePodDeregister") {
			t.Fatalf("%s", r.Object)
		}
	})
}
