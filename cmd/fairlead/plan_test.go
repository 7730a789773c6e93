// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
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
`

func TestPlanInEveryFormat(t *testing.T) {
	w := newWorld(t)
	g, o := explained(t)
	o.Manifests = manifests.Once
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
	if err := json.Unmarshal([]byte(got[1]), &d); err != nil || d.Changes == nil || d.Held == nil || d.Waiting == nil || d.Problems == nil {
		t.Errorf("%v, or a list is null: %+v", err, d)
	}
}

func TestPlanFailsInOneLine(t *testing.T) {
	w := newWorld(t)
	_, o := explained(t)
	o.Manifests = manifests.Once
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
