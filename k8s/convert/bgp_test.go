// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
)

// degraded gives the one problem that a value is used with, and fails the test for any other.
func degraded(t *testing.T, field string, problems []world.Problem) world.Problem {
	t.Helper()
	if len(problems) != 1 || problems[0].Severity != world.Degraded || problems[0].Field != field || problems[0].Why == "" || problems[0].Remedy == "" {
		t.Fatalf("problems are %+v, want one that degrades %s", problems, field)
	}
	return problems[0]
}

func TestLowestLocalPreferenceIsRaisedAboveThatOfDemotedMembers(t *testing.T) {
	for asked, want := range map[uint32]uint32{0: 0, 1: 2, 2: 2, 100: 100, 1<<32 - 1: 1<<32 - 1} {
		a, problems := convert.Advertisement(&api.BGPAdvertisement{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: api.BGPAdvertisementSpec{LocalPref: asked},
		})
		if a.LocalPref != want || len(problems) > 0 != (asked != want) {
			t.Errorf("%d is %d, %v", asked, a.LocalPref, problems)
		}
		if asked != want {
			if p := degraded(t, "spec.localPref", problems); !strings.Contains(p.Why, "2") {
				t.Errorf("it is told %s", p.Why)
			}
		}
	}
}
