// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/e2e/lab"
)

// design §11: `plan` tells what manifests would change before they are applied, by whichever member is asked, and what
// it tells is what comes.
func TestPlanTellsWhatManifestsWouldChange(t *testing.T) {
	l := started(t, lab.Options{})
	l.Agreed()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(flags ...string) (d records.Plan) {
		t.Helper()
		out, stderr, code := l.CLI(append([]string{"plan", "-f", dir, "-o", "json"}, flags...)...)
		if code != 0 {
			t.Fatalf("plan: %s", stderr)
		}
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return d
	}
	write("svc-0.yaml", lab.Service(0, 2, 3)) // a pod moves
	write("svc-1.yaml", lab.Service(1, 3))
	for _, m := range []string{"m1", "m2", "m3"} {
		d := ask("--server", l.Member(m).Address+":7443")
		for _, want := range []records.PlanChange{
			{Target: "route", Name: prefix(0).String(), What: "gets node n3 as a next hop"},
			{Target: "route", Name: prefix(0).String(), What: "loses node n1 as a next hop"},
			{Target: "route", Name: prefix(1).String(), What: "gets node n3 as a next hop"},
			{Target: "address", Name: lab.VIP(1).String(), What: "goes to Service default/svc-1"},
		} {
			if !slices.Contains(d.Changes, want) {
				t.Errorf("asked %s: %+v is not in %+v", m, want, d.Changes)
			}
		}
		if d.AnsweredBy != l.Leader().Name || len(d.Held)+len(d.Problems) > 0 {
			t.Errorf("asked %s: %+v", m, d)
		}
	}
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2)) // nothing came of asking
	l.Manifests.Service(0, 2, 3)
	l.Manifests.Service(1, 3)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2), lab.NodeAddress(3))
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(3))
	l.Agreed()
	if d := ask(); len(d.Changes) > 0 {
		t.Errorf("what is applied would change %+v", d.Changes)
	}
	// In place of the folder, Service 1 and the switch are not there any more.
	if err := os.Remove(filepath.Join(dir, "svc-1.yaml")); err != nil {
		t.Fatal(err)
	}
	d := ask("--in-place-of", "manifests:"+l.Manifests.Dir)
	gone := records.PlanChange{Target: "route", Name: prefix(1).String(), What: "loses node n3 as a next hop"}
	if !slices.Contains(d.Changes, gone) {
		t.Errorf("%+v is not in %+v", gone, d.Changes)
	}
}
