// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/vm"
	"fairlead.io/fairlead/sim/whatif"
)

// shipped loads the program that ships, once for all tests.
var shipped = sync.OnceValues(func() (*vm.Module, error) { return sim.Load(context.Background(), program.Options{}) })

// The shipped code carries the repository's own example through the death of a node: web goes on at the other one within
// two seconds, and equal seeds tell the same.
func TestTheExampleSurvivesTheDeathOfANode(t *testing.T) {
	testkit.Long(t, "runs worlds")
	ctx := context.Background()
	c, err := whatif.Read("../../examples/quickstart")
	if err != nil {
		t.Fatal(err)
	}
	m, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	o := whatif.Options{Program: m, Members: 3, Nodes: 3, Seed: 1, Duration: 30 * time.Second, Only: []string{"node-node-a-dies"}}
	var second whatif.Report
	again := make(chan error)
	go func() {
		var err error
		second, err = c.Ask(ctx, o)
		again <- err
	}()
	first, err := c.Ask(ctx, o)
	if err := errors.Join(err, <-again); err != nil {
		t.Fatal(err)
	}
	if first.Failed() != nil {
		t.Fatal(first.Failed().Summary)
	}
	seen := map[string]whatif.Outcome{}
	for _, a := range first.Answers[0].Addresses {
		seen[a.Service] = a
	}
	web, api := seen["default/web"], seen["default/api"]
	if web.Failed == 0 || web.Gap.Seconds > 2 || !web.Healed || len(web.During.Nodes) != 1 || web.During.Nodes[0].Name != "node-b" {
		t.Errorf("web: %+v", web)
	}
	if api.Sent == 0 || api.Failed != 0 || api.Before.Nodes[0].Name != "node-c" {
		t.Errorf("api: %+v", api)
	}
	if len(first.Unserved) != 1 || first.Unserved[0].Service != "default/stranger" {
		t.Errorf("unserved: %+v", first.Unserved)
	}
	if a, b := first.Answers[0].Digest, second.Answers[0].Digest; a != b || a == "" {
		t.Errorf("digests %s and %s", a, b)
	}
}

// K4: an address of spec.externalIPs is announced and served whatever the type of its Service, also while the leader is killed. A
// Service without a cluster address has none.
// Rule: K4.
func TestExternalIPsOfAllTypesAreServed(t *testing.T) {
	testkit.Long(t, "runs worlds")
	ctx, dir := context.Background(), t.TempDir()
	const manifests = `
apiVersion: v1
kind: Service
metadata: {name: inner}
spec: {type: ClusterIP, externalIPs: [198.51.100.20], selector: {app: inner}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: ported}
spec: {type: NodePort, externalIPs: [198.51.100.21], selector: {app: ported}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: bare}
spec: {type: ClusterIP, clusterIP: None, externalIPs: [198.51.100.22], selector: {app: bare}, ports: [{port: 80}]}
`
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := whatif.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Ask(ctx, whatif.Options{Program: m, Members: 3, Nodes: 3, Seed: 1, Duration: 20 * time.Second, Only: []string{"leader-killed"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed() != nil {
		t.Fatal(r.Failed().Summary)
	}
	served := map[string]bool{}
	for _, a := range r.Answers[0].Addresses {
		served[a.Service] = a.Sent > 0 && a.Failed == 0 && len(a.Before.Nodes) > 0
	}
	if len(served) != 2 || !served["default/inner"] || !served["default/ported"] || len(r.Unserved) > 0 {
		t.Errorf("served %v, unserved %+v, answers %+v", served, r.Unserved, r.Answers[0].Addresses)
	}
}
