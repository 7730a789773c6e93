// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/sim/kube"
)

// exchange is one request and what is compared of its answers.
type exchange struct {
	name, method, path, body string
	contentType, accept      string
}

const (
	asJSON  = "application/json"
	asMerge = "application/merge-patch+json"
	asApply = "application/apply-patch+yaml"
	asProto = "application/vnd.kubernetes.protobuf"
)

const (
	servicesPath = "/api/v1/namespaces/default/services"
	webPath      = servicesPath + "/web"
	statusPath   = webPath + "/status"
	slicesPath   = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	eventsPath   = "/apis/events.k8s.io/v1/namespaces/default/events"
)

func loadBalancer(name string) string {
	return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + name + `"},"spec":{"type":"LoadBalancer","clusterIP":"10.96.7.7","selector":{"app":"web"},"ports":[{"port":80,"nodePort":30777}]}}`
}

func applied(manager, force, more string) (path, body string) {
	return statusPath + "?fieldManager=" + manager + "&force=" + force, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"default"` + more + `}`
}

// story is what is asked, in order. What comes later builds on what came before.
func story() []exchange {
	const condition = `{"type":"fairlead.io/Allocated","status":"True","reason":"Allocated","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}`
	ingress := func(ip string) string {
		return `,"status":{"loadBalancer":{"ingress":[{"ip":"` + ip + `","ipMode":"VIP"}]},"conditions":[` + condition + `]}}`
	}
	apply := func(name, manager, force, more, rest string) exchange {
		path, body := applied(manager, force, more)
		return exchange{name, "PATCH", path, body + rest, asApply, ""}
	}
	return []exchange{
		{name: "create", method: "POST", path: servicesPath + "?fieldManager=user", body: loadBalancer("web")},
		{name: "create again", method: "POST", path: servicesPath, body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}}`},
		{name: "create without ports", method: "POST", path: servicesPath, body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"none"},"spec":{"type":"LoadBalancer"}}`},
		{name: "create by a wrong name", method: "POST", path: servicesPath, body: strings.Replace(loadBalancer("x"), `"x"`, `"No Name"`, 1)},
		{name: "create nowhere", method: "POST", path: "/api/v1/namespaces/nowhere/services", body: loadBalancer("web")},
		{name: "create elsewhere", method: "POST", path: "/api/v1/namespaces/kube-system/services", body: strings.Replace(loadBalancer("web"), `"web"`, `"web","namespace":"default"`, 1)},
		{name: "create another kind", method: "POST", path: servicesPath, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`},
		{name: "create nonsense", method: "POST", path: servicesPath, body: `{"apiVersion":"v1","kind":`},
		{name: "create as text", method: "POST", path: servicesPath, body: "web", contentType: "text/plain"},
		{name: "get", method: "GET", path: webPath},
		{name: "get what is not there", method: "GET", path: servicesPath + "/nobody"},
		{name: "get in protobuf", method: "GET", path: webPath, accept: asProto},
		{name: "get as what nobody speaks", method: "GET", path: webPath, accept: "image/png"},
		{name: "get a group that is not there", method: "GET", path: "/apis/metallb.io/v1beta1"},
		{name: "get a resource that is not there", method: "GET", path: "/apis/metallb.io/v1beta1/ipaddresspools"},
		{name: "list by name", method: "GET", path: servicesPath + "?fieldSelector=metadata.name%3Dweb"},
		{name: "list by a field that is none", method: "GET", path: servicesPath + "?fieldSelector=spec.nothing%3Dweb"},
		{name: "list by a selector that is none", method: "GET", path: servicesPath + "?labelSelector=a%3D%3D%3Db"},
		{name: "list the future", method: "GET", path: servicesPath + "?resourceVersion=99999999"},
		{name: "list nonsense", method: "GET", path: servicesPath + "?resourceVersion=x"},
		{name: "list exactly nothing", method: "GET", path: servicesPath + "?resourceVersion=0&resourceVersionMatch=Exact"},
		{name: "list to match without version", method: "GET", path: servicesPath + "?resourceVersionMatch=NotOlderThan"},
		{name: "list from a token that is none", method: "GET", path: servicesPath + "?limit=1&continue=x"},
		{name: "list some", method: "GET", path: servicesPath + "?limit=1&fieldSelector=metadata.name%3Dweb"},
		{name: "watch to match", method: "GET", path: servicesPath + "?watch=true&resourceVersion=1&resourceVersionMatch=NotOlderThan"},
		{name: "watch from nonsense", method: "GET", path: servicesPath + "?watch=true&resourceVersion=x"},
		{name: "delete everything of nothing", method: "POST", path: webPath, body: loadBalancer("web")},
		apply("apply", "fairlead", "true", "", ingress("203.0.113.1")),
		apply("apply again", "fairlead", "true", "", ingress("203.0.113.1")),
		apply("apply without a manager", "", "true", "", ingress("203.0.113.1")),
		apply("apply over another without force", "other", "false", "", ingress("203.0.113.2")),
		apply("apply the same as another", "other", "false", "", ingress("203.0.113.1")),
		apply("apply less", "other", "false", "", "}"),
		apply("apply to a version that is gone", "fairlead", "true", `,"resourceVersion":"1"`, ingress("203.0.113.1")),
		apply("apply to another life", "fairlead", "true", `,"uid":"another"`, ingress("203.0.113.1")),
		{name: "apply another kind", method: "PATCH", path: statusPath + "?fieldManager=fairlead", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`, contentType: asApply},
		{name: "apply another name", method: "PATCH", path: statusPath + "?fieldManager=fairlead", body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web2"}}`, contentType: asApply},
		{name: "apply nonsense", method: "PATCH", path: statusPath + "?fieldManager=fairlead", body: `{"apiVersion`, contentType: asApply},
		{name: "put an old version", method: "PUT", path: webPath, body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","resourceVersion":"1"},"spec":{"ports":[{"port":80}]}}`},
		{name: "put another life", method: "PUT", path: webPath, body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","uid":"another"},"spec":{"ports":[{"port":80}]}}`},
		{name: "a resource that is none", method: "GET", path: "/api/v1/nothing"},
		{name: "a resource of a group that is none", method: "GET", path: "/apis/discovery.k8s.io/v1/nothing"},
		{name: "a subresource that is none", method: "GET", path: webPath + "/nothing"},
		apply("apply an address that is none", "fairlead", "true", "", ingress("203.0.113")),
		apply("apply a condition without a reason", "fairlead", "true", "", `,"status":{"conditions":[{"type":"a","status":"True","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
		apply("apply a field that is none", "fairlead", "true", "", `,"status":{"nothing":1}}`),
		{name: "apply as JSON", method: "PATCH", path: statusPath + "?fieldManager=fairlead", body: "{}", contentType: asJSON},
		{name: "merge with force", method: "PATCH", path: statusPath + "?force=true", body: "{}", contentType: asMerge},
		{name: "apply to nobody", method: "PATCH", path: servicesPath + "/nobody/status?fieldManager=fairlead&force=true",
			body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"nobody","namespace":"default"}}`, contentType: asApply},
		{name: "apply to one that is gone", method: "PATCH", path: servicesPath + "/nobody/status?fieldManager=fairlead&force=true", contentType: asApply,
			body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"nobody","namespace":"default","uid":"gone","resourceVersion":"7"},"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}}}`},
		{name: "another takes the address", method: "PATCH", path: statusPath + "?fieldManager=other", contentType: asMerge,
			body: `{"status":{"loadBalancer":{"ingress":[{"ip":"198.51.100.1"}]}}}`},
		apply("apply nothing", "fairlead", "true", "", "}"),
		apply("apply anew", "fairlead", "true", "", ingress("203.0.113.9")),
		{name: "edit the status", method: "PATCH", path: statusPath + "?fieldManager=kubectl-edit", body: `{"status":{"loadBalancer":{"ingress":null},"conditions":null}}`, contentType: asMerge},
		apply("apply after an edit", "fairlead", "true", "", ingress("203.0.113.9")),
		{name: "write status through the object", method: "PATCH", path: webPath + "?fieldManager=user", body: `{"status":{"conditions":null},"spec":{"ports":[{"port":81,"nodePort":30777}]}}`, contentType: asMerge},
		{name: "become internal", method: "PATCH", path: webPath + "?fieldManager=user", body: `{"spec":{"type":"ClusterIP"}}`, contentType: asMerge},
		apply("apply an address to one that is internal", "fairlead", "true", "", ingress("203.0.113.9")),
		apply("take all back", "fairlead", "true", "", "}"),
		{name: "hold on to it", method: "PATCH", path: webPath + "?fieldManager=user", body: `{"metadata":{"finalizers":["example.com/hold"]}}`, contentType: asMerge},
		{name: "delete the wrong life", method: "DELETE", path: webPath, body: `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"another"}}`},
		{name: "delete what is held", method: "DELETE", path: webPath},
		{name: "let go", method: "PATCH", path: webPath + "?fieldManager=user", body: `{"metadata":{"finalizers":null}}`, contentType: asMerge},
		{name: "gone", method: "GET", path: webPath},
		{name: "a slice", method: "POST", path: slicesPath + "?fieldManager=user", body: `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"s"},"addressType":"IPv4","endpoints":[{"addresses":["192.0.2.7"]}],"ports":[{"port":80}]}`},
		{name: "a slice of the wrong family", method: "POST", path: slicesPath, body: `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"t"},"addressType":"IPv6","endpoints":[{"addresses":["192.0.2.7"]}]}`},
		{name: "change a slice", method: "PATCH", path: slicesPath + "/s?fieldManager=user", body: `{"endpoints":[{"addresses":["192.0.2.8"]}]}`, contentType: asMerge},
		{name: "an event", method: "POST", path: eventsPath, body: happening("e", "")},
		{name: "the event again", method: "POST", path: eventsPath, body: happening("e", "")},
		{name: "an event without a time", method: "POST", path: eventsPath, body: strings.Replace(happening("f", ""), `"eventTime"`, `"nothing"`, 1)},
		{name: "an event of somewhere else", method: "POST", path: eventsPath, body: strings.Replace(happening("f", ""), `"default"`, `"elsewhere"`, 1)},
		{name: "an event without a reason", method: "POST", path: eventsPath, body: strings.Replace(happening("f", ""), `"reason"`, `"nothing"`, 1)},
		{name: "an event that says too much", method: "POST", path: eventsPath, body: happening("f", strings.Repeat("x", 1025))},
		{name: "whose token", method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"nobody's"}}`},
		{name: "list tokens", method: "GET", path: "/apis/authentication.k8s.io/v1/tokenreviews"},
		{name: "a path that is none", method: "GET", path: "/apis/nothing.example.com/v1/things"},
	}
}

func happening(name, note string) string {
	return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + name + `"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"fairlead.io/controller","reportingInstance":"m1","action":"Announce","reason":"Announced","type":"Normal","note":"` + note + `","regarding":{"apiVersion":"v1","kind":"Service","namespace":"default","name":"web"}}`
}

// ask gives the status, the type and the body of an answer.
func (e exchange) ask(t *testing.T, c *http.Client, host string) (status int, media string, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), e.method, host+e.path, bytes.NewReader([]byte(e.body)))
	if err != nil {
		t.Fatal(err)
	}
	if e.body != "" && e.contentType == "" {
		e.contentType = asJSON
	}
	for k, v := range map[string]string{"Content-Type": e.contentType, "Accept": e.accept} {
		if v != "" {
			r.Header.Set(k, v)
		}
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if body, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Content-Type"), body
}

// essence is a body without what differs between any two servers, as indented text.
func essence(t *testing.T, media string, body []byte) string {
	if media != asJSON {
		return media
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if o, ok := v.(map[string]any); ok && o["kind"] != "Service" && o["kind"] != "ServiceList" && o["kind"] != "Status" {
		delete(o["metadata"].(map[string]any), "managedFields") // the model keeps them where Fairlead looks at them
	}
	out, err := json.MarshalIndent(scrub("", v), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return volatile.ReplaceAllString(storage.ReplaceAllString(string(out), ""), "N")
}

// volatile are versions and identities in the text of messages.
var volatile = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|current: \d+`)

// storage is what servers let slip of what is behind them.
var storage = regexp.MustCompile(`StorageError: .*AdditionalErrorMsg: `)

func scrub(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch {
			case k == "details" && len(v[k].(map[string]any)) == 0:
				delete(v, k)
			case k == "managedFields":
				v[k] = owned(v[k].([]any))
			case k == "resourceVersion", k == "uid", k == "creationTimestamp", k == "deletionTimestamp", k == "continue", k == "remainingItemCount",
				v["kind"] == "Status" && k == "message" && fmt.Sprint(v["reason"]) != "Conflict" && fmt.Sprint(v["reason"]) != "NotFound",
				name == "details" && k == "causes",
				name == "items" && k == "kind":
				v[k] = "?"
			default:
				v[k] = scrub(k, v[k])
			}
		}
	case []any:
		for i := range v {
			v[i] = scrub(name, v[i])
		}
	}
	return v
}

// owned lists who owns which fields, in a form that does not depend on times.
func owned(list []any) []string {
	var out []string
	for _, one := range list {
		m := one.(map[string]any)
		fields, _ := json.Marshal(m["fieldsV1"])
		out = append(out, fmt.Sprint(m["manager"], " ", m["operation"], " ", m["subresource"], " ", string(fields)))
	}
	slices.Sort(out)
	return out
}

// recorded is what a real server answered to the story.
const recorded = "testdata/answers.txt"

var update = flag.Bool("update", false, "record the answers of a real API server anew")

// tell gives all answers to the story as text.
func tell(t *testing.T, c *http.Client, host string) map[string]string {
	out := map[string]string{}
	for _, e := range story() {
		status, media, body := e.ask(t, c, host)
		out[e.name] = fmt.Sprintf("%d %s\n", status, essence(t, media, body))
	}
	return out
}

// The model answers to every request of the story as a real API server did.
func TestTheModelAnswersAsARealServerDid(t *testing.T) {
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for part := range strings.SplitSeq(string(text), "## ") {
		name, answer, _ := strings.Cut(part, "\n")
		want[name] = answer
	}
	b := newBench(1, kube.Options{NoSlices: true})
	b.run(t)
	have := tell(t, &http.Client{Transport: transport{b, "m1"}}, "http://kubernetes")
	for _, e := range story() {
		if have[e.name] != want[e.name] {
			t.Errorf("%s: the model answers %s\na real server %s", e.name, have[e.name], want[e.name])
		}
	}
}

// What was recorded is what a real API server answers.
func TestTheRecordedAnswersAreThoseOfARealServer(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	server, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	answers := tell(t, server, c.Config().Host)
	var b strings.Builder
	for _, e := range story() {
		fmt.Fprintf(&b, "## %s\n%s", e.name, answers[e.name])
	}
	if *update {
		if err := os.WriteFile(recorded, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != b.String() {
		t.Errorf("a real server answers\n%s", b.String())
	}
}
