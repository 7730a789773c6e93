// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	api "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/k8s/manifests"
)

const drafted = `apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop}
spec: {type: LoadBalancer, externalIPs: [203.0.113.77], ports: [{port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, namespace: shop, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{port: 8080, protocol: TCP}]
endpoints: [{addresses: ["10.0.4.1"], nodeName: n04, conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: odd, namespace: shop}
spec: {type: LoadBalancer, externalIPs: [nonsense, 198.51.100.4], ports: [{port: 80, protocol: TCP}]}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: clb, namespace: shop}
spec: {driverType: Webhook, url: "http://192.0.2.7:8443"}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: edge, namespace: shop, uid: e1}
spec: {lbDriver: clb, lbSpec: {vip: 198.51.100.21}, attributes: {zone: a}}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: web, namespace: shop, uid: g1}
spec: {lbName: edge, static: ["192.0.2.8:80"], parameters: {weight: "10"}}
---
apiVersion: fairlead.io/v1alpha1
kind: AddressPolicy
metadata: {name: typed}
spec: {externalIPs: [203.0.113.0/24, 198.51.100.0/24]}
`

func TestPlanInEveryFormat(t *testing.T) {
	w := newWorld(t)
	g, o := explained(t)
	o.Manifests = manifests.Once(nil, nil)
	server := w.serve(&fakeRaft{}, records.New(o))
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("new/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"new/sub/shop.yaml": drafted, "new/.hidden.yaml": "broken: [", "new/README.md": "no manifest"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := g.Read().Digest()
	var got [3]string
	for i, format := range []string{"table", "json", "yaml"} {
		got[i] = w.run([]string{server}, "plan", "-f", "new", "-o", format).mustPrint(t)
	}
	file := w.run([]string{server}, "plan", "-f", "new/sub/shop.yaml").mustPrint(t)
	if g.Read().Digest() != before {
		t.Error("the record changed")
	}
	if file != got[0] {
		t.Errorf("a file has another answer than its folder:\n%s", file)
	}
	t.Chdir(home) // golden files are there
	for i, format := range []string{"table", "json", "yaml"} {
		golden(t, "plan-"+format, got[i])
	}
	var d api.Plan
	if err := json.Unmarshal([]byte(got[1]), &d); err != nil || d.Changes == nil || d.Held == nil || d.Calls == nil || d.Waiting == nil || d.Problems == nil {
		t.Errorf("%v, or a list is null: %+v", err, d)
	}
}

// People are told what was left out and why, and that nothing else would change: of what is left out nobody knows.
func TestPlanTablesTellWhatIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		plan api.Plan
		want string
	}{
		{api.Plan{Unforetold: []string{"BalancingPolicy shop/web"}}, "not foretold: BalancingPolicy shop/web; `fairlead get policies` tells"},
		{api.Plan{Left: 2, LeftWhy: "an LBCF controller runs"}, "2 objects of outside load balancers are left out: an LBCF controller runs"},
		{api.Plan{LeftWhy: "an LBCF controller runs"}, "what they would take off outside load balancers is left out: an LBCF controller runs"},
	} {
		var out strings.Builder
		if err := (forecast{Plan: c.plan}).WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{c.want, "Nothing else would change."} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	}
}

func TestPlanFailsInOneLine(t *testing.T) {
	w := newWorld(t)
	_, o := explained(t)
	o.Manifests = manifests.Once(nil, nil)
	server := w.serve(&fakeRaft{}, records.New(o))
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#\n", 300<<10)), 0o644); err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(small, []byte(drafted), 0o644); err != nil {
		t.Fatal(err)
	}
	kindless := filepath.Join(t.TempDir(), "kindless.yaml")
	if err := os.WriteFile(kindless, []byte(drafted+"---\napiVersion: lbcf.tkestack.io/v1\nmetadata: {name: d, namespace: shop}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bomb := filepath.Join(t.TempDir(), "bomb.yaml")
	if err := os.WriteFile(bomb, []byte("a: &a \""+strings.Repeat("x", 200<<10)+"\"\nb: ["+strings.Repeat("*a,", 60<<10)+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.run([]string{server}, "plan", "-f", bomb).mustFail(t, exitFailed, "bomb.yaml:2: with the alias *a, aliases add more than", "write out what they stand for", "nothing is foretold of it")
	at := fmt.Sprintf("kindless.yaml:%d: no Kubernetes object: it has no kind; mend it", strings.Count(drafted, "\n")+2)
	w.run([]string{server}, "plan", "-f", kindless).mustFail(t, exitFailed, at, "or leave it out")
	w.run([]string{server}, "plan").mustFail(t, exitUsage, "want -f FILE|DIR")
	w.run([]string{server}, "plan", "-f", small, "x").mustFail(t, exitUsage, "no arguments")
	w.run([]string{server}, "plan", "-f", filepath.Join(dir, "none")).mustFail(t, exitFailed, "none", "name a file")
	w.run([]string{server}, "plan", "-f", t.TempDir()).mustFail(t, exitFailed, "no manifests")
	w.run([]string{server}, "plan", "-f", dir).mustFail(t, exitFailed, "more than 512 KiB")
	w.run([]string{server}, "plan", "-f", small, "--in-place-of", "nowhere").mustFail(t, exitFailed, "no source nowhere", "`fairlead get sources`")
	w.run([]string{w.serve(&fakeRaft{}, shop())}, "plan", "-f", small).mustFail(t, exitFailed, "use the release of fairlead that the group runs")
}

func TestPlanIsDocumentedWithItsFields(t *testing.T) {
	documented(t, "plan", "`"+fields(reflect.TypeFor[api.Plan]())+"`\n")
}
