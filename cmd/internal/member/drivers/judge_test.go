// SPDX-License-Identifier: Apache-2.0

package drivers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// lbcf §3.12: whole pods go out, those that are gone do not, and UIDs come back.
// Rule: lbcf §3.12.
func TestPodsAreJudgedAsSpecified(t *testing.T) {
	r := newRig(t, nil)
	r.objects["pod shop/web-0/"+podUID] = podJSON
	pods := []balancers.PodRef{
		{ID: world.ID{Namespace: "shop", Name: "web-0"}, UID: podUID},
		{ID: world.ID{Namespace: "shop", Name: "web-1"}, UID: "gone"},
	}
	r.answer = `{"succ":true,"msg":"in-place upgrade","doNotDeregister":[{"metadata":{"name":"web-0","uid":"` + podUID + `"}},{"metadata":{"uid":"a-stranger"}}]}`
	keep, err := r.Judge(t.Context(), "kube-system/lbcf-edge", pods)
	if err != nil || !slices.Equal(keep, []string{podUID}) {
		t.Errorf("keep %v, %v", keep, err)
	}
	if want := `{"dryRun":false,"notReadyPods":[` + podJSON + `]}`; r.path != "/v1/judgePodDeregister" || r.body != want {
		t.Errorf("sent to %s\n%s\nwant\n%s", r.path, r.body, want)
	}
	r.path = ""
	if keep, err := r.Judge(t.Context(), "kube-system/lbcf-edge", pods[1:]); err != nil || len(keep) > 0 || r.path != "" {
		t.Errorf("of no pod that exists: %v, %v, sent to %q", keep, err, r.path)
	}
	r.answer = `{"succ":false,"msg":"not today"}`
	if _, err := r.Judge(t.Context(), "kube-system/lbcf-edge", pods); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("the driver said no: %v", err)
	}
	if _, err := r.Judge(t.Context(), "kube-system/other", pods); err == nil {
		t.Error("a driver that does not exist has judged")
	}
}

// lbcf §5.9: a dry run asks the drivers that there would be, with dryRun, and only those that accept it.
func TestDryRunsAskTheDriversOfTheRehearsedRecord(t *testing.T) {
	for _, accepts := range []bool{true, false} {
		r := newRig(t, func(d *fsm.Driver) { d.AcceptsDryRun = accepts })
		rehearsed, err := r.record.Read().Copy()
		if err != nil {
			t.Fatal(err)
		}
		r.record.must(&fsm.DeleteDriver{Name: "kube-system/lbcf-edge"})
		if _, known := r.Find("kube-system/lbcf-edge"); known {
			t.Fatal("a driver that is gone is found")
		}
		r.Rehearse(rehearsed.Read())
		d, known := r.Find("kube-system/lbcf-edge")
		if !known {
			t.Fatal("the driver of the rehearsed record is not found")
		}
		l := &fsm.LoadBalancer{ID: "LoadBalancer/shop/edge/u", Driver: "kube-system/lbcf-edge", UID: "u"}
		a := d.Call(t.Context(), fsm.ActionCreateBalancer, leader.Request{Balancer: l, Deadline: r.now() + time.Second, DryRun: true})
		if sent := strings.Contains(r.body, `"dryRun":true`); sent != accepts || (a.Result == fsm.ResultSucceeded) != accepts {
			t.Errorf("it accepts dry runs: %v; sent %q, answer %+v", accepts, r.body, a)
		}
	}
}
