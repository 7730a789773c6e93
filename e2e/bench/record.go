// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"

	"fairlead.io/fairlead/fsm"
)

// Sizes of the record, in bindings.
const (
	largeRecord = 1_000_000
	smallRecord = 100_000
	balancers   = 1000
)

// perEntry is how many commands one log entry carries, perBatch how many entries come at once: as under load.
const (
	perEntry = 64
	perBatch = 64
)

// filled gives a record with n bindings that wait to be ensured.
func filled(t *bench, n int) *fsm.State {
	t.progressf("filling a record with %d bindings", n)
	s := fsm.New()
	apply := func(cs ...fsm.Command) {
		mustApply(t, s, []fsm.LogEntry{entry(t, s, s.Applied()+1, cs...)})
	}
	apply(&fsm.InitGroup{Group: "bench", Format: fsm.NewestFormat})
	var batch []fsm.Command
	put := func(c fsm.Command) {
		if batch = append(batch, c); len(batch) == fsm.MaxItems {
			apply(batch...)
			batch = batch[:0]
		}
	}
	for i := range balancers {
		put(&fsm.PutLoadBalancer{ID: balancerID(i), Driver: driver, Info: infoOf(balancerID(i)), Synced: true})
	}
	for i := range n {
		put(bindingNumber(i))
	}
	apply(batch...)
	return s
}

func balancerID(i int) fsm.BalancerID {
	return fsm.BalancerID(fmt.Sprintf("LoadBalancer/default/lb-%04d/6b1f0d0e-0000-4000-8000-%012d", i%balancers, i%balancers))
}

const driver = "default/drv"

// infoOf is what the driver knows a balancer by: its object's UID.
func infoOf(id fsm.BalancerID) []fsm.KV { return []fsm.KV{{Key: "id", Value: path.Base(string(id))}} }

// subjectOf is the line of operations of a binding.
func subjectOf(b *fsm.PutBinding) fsm.Subject {
	return fsm.SubjectOf(fsm.IdentityOf(driver, infoOf(b.Balancer)), b.Address, b.ID)
}

func bindingNumber(i int) *fsm.PutBinding {
	return &fsm.PutBinding{
		ID: fsm.BindingID(fmt.Sprintf("default/%032x", i)), Balancer: balancerID(i),
		Owner:      "BackendGroup/default/web/6b1f0d0e-0000-4000-8000-000000000001",
		Backend:    backendNumber(i),
		Address:    fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255),
		Parameters: []fsm.KV{{Key: "protocol", Value: "TCP"}, {Key: "weight", Value: "10"}},
	}
}

func backendNumber(i int) fsm.Backend {
	return fsm.Backend{
		Kind: "Pod", Name: fmt.Sprintf("web-%07d", i), UID: fmt.Sprintf("6b1f0d0e-0000-4000-8000-%012d", i),
		Port: 8080, Protocol: "TCP", Target: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255),
	}
}

// entry encodes commands as the leader does.
func entry(t *bench, s *fsm.State, index fsm.Index, cs ...fsm.Command) fsm.LogEntry {
	_, epoch, _ := s.Identity()
	proposals := make([]fsm.Proposal, 0, len(cs))
	for _, c := range cs {
		proposals = append(proposals, fsm.Proposal{
			Actor: "member/m1", Reason: "benchmark", AtUnixMilli: 1_790_000_000_000, Command: c,
		})
	}
	data, err := fsm.EncodeEntry(epoch, proposals)
	if err != nil {
		t.Fatal(err)
	}
	return fsm.LogEntry{Index: index, Term: 1, Data: data}
}

func mustApply(t *bench, s *fsm.State, entries []fsm.LogEntry) {
	for _, outcomes := range s.ApplyEntries(entries) {
		for _, o := range outcomes {
			if err := o.Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
