// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
)

func TestRecordIsShownInNumbers(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	g.Apply(t,
		&fsm.PutNode{ID: "n1", Eligible: true}, &fsm.RegisterBoot{Node: "n1", Boot: "b"},
		&fsm.PutService{Service: fsm.Service{ID: "a/late", Pending: fsm.Pending{Code: "no-pool"}}},
		&fsm.PutHold{ID: "h1", Of: "Service", Subjects: []string{"a/late"}},
		&fsm.PutHold{ID: "rewind-kubernetes", Of: "Source", Subjects: []string{"kubernetes"}},
		&fsm.ObserveView{Source: "kubernetes"}, &fsm.ObserveView{Source: "manifests"},
	)
	err := testutil.CollectAndCompare(records.Collector{Record: g}, strings.NewReader(`
# HELP fairlead_holds Mass changes that wait for an operator.
# TYPE fairlead_holds gauge
fairlead_holds 2
# HELP fairlead_nodes Nodes, by what the group found of them.
# TYPE fairlead_nodes gauge
fairlead_nodes{liveness="up"} 1
# HELP fairlead_services Services, by why they have no address, empty for those that have.
# TYPE fairlead_services gauge
fairlead_services{pending=""} 0
fairlead_services{pending="no-pool"} 1
# HELP fairlead_source_ran_back 1 while nothing of a source is acted on until an operator accepts that it ran back.
# TYPE fairlead_source_ran_back gauge
fairlead_source_ran_back{source="kubernetes"} 1
fairlead_source_ran_back{source="manifests"} 0
`), "fairlead_holds", "fairlead_nodes", "fairlead_services", "fairlead_source_ran_back")
	if err != nil {
		t.Error(err)
	}
}
