// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

// DESIGN §6, coming back: hashicorp/raft keeps no commit index, so a member that returns alone has only its newest
// snapshot for certain. It announces, demoted, all that it announced last, and never less before that.
func TestMemberReturningAloneAnnouncesItsFullLastState(t *testing.T) {
	const services, entries = 100, 10_000
	l := started(t, lab.Options{Extra: "raft: {snapshotThreshold: 1000000}\n"})
	all := ""
	for i := 1; i < services; i++ {
		all += "---\n" + lab.Service(i, 1, 2)
	}
	l.Manifests.Put("all.yaml", all)
	l.Bird.WaitNextHops(prefix(services-1), lab.NodeAddress(1), lab.NodeAddress(2))
	commitEntries(t, l, entries)
	l.Manifests.Service(0, 2, 3) // the newest state differs from every older one
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2), lab.NodeAddress(3))
	l.Agreed()
	for _, m := range l.Members {
		m.Kill()
	}
	m2 := l.Member("m2")
	stop := l.NeverMissing(prefix(0), prefix(1), prefix(services-1))
	m2.Start()
	l.Bird.WaitEstablished("m2")
	fresh := func() (n, demoted int) {
		for _, r := range l.Bird.Routes() {
			if r.Protocol == "m2" && !r.Stale {
				n++
				if r.MED > 0 {
					demoted++
				}
			}
		}
		return n, demoted
	}
	l.Eventually("the full last state of m2", func() error {
		if n, _ := fresh(); n != 2*services {
			return fmt.Errorf("%d of %d paths", n, 2*services)
		}
		return nil
	})
	if n, demoted := fresh(); demoted != n {
		t.Errorf("%d of %d paths are demoted; without a leader all must be", demoted, n)
	}
	if hops := l.Bird.NextHops(prefix(0)); len(hops) != 2 || hops[0] != lab.NodeAddress(2) || hops[1] != lab.NodeAddress(3) {
		t.Errorf("the newest state of service 0 is on nodes 2 and 3, the switch has %v", hops)
	}
	for _, m := range l.Others(m2) {
		m.Start()
	}
	l.Agreed()
	l.Eventually("m2 to regain its rank", func() error {
		if n, demoted := fresh(); demoted > 0 {
			return fmt.Errorf("%d of %d paths are demoted", demoted, n)
		}
		return nil
	})
	stop()
}

// commitEntries commits n log entries, one after the other, as a member would. An election in between costs a repeat.
func commitEntries(t *testing.T, l *lab.Lab, n int) {
	t.Helper()
	source, err := pki.OpenSource(l.Issue(pki.Member, "tester", "127.0.0.1"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := l.Status()
	if !ok {
		t.Fatal("no status")
	}
	self := func() (string, uint64) { return s.Group, s.Epoch }
	clients := map[*lab.Member]*admin.Client{}
	for _, m := range l.Members {
		clients[m] = admin.NewClient(admin.ClientOptions{
			Endpoint: &pki.Endpoint{Source: source, Self: self}, Servers: []string{m.Address + ":7443"},
		})
		defer clients[m].Close()
	}
	leader := l.Leader()
	for i := 0; i < n; i++ {
		settings := fsm.Settings{Unsteered: true, HistoryLimit: uint32(1 + i%64)}
		_, err := records.Forward(context.Background(), clients[leader].Record, fsm.Epoch(s.Epoch), cluster.Bulk, []fsm.Proposal{{
			Actor: "test", AtUnixMilli: int64(i), Command: &fsm.PutSettings{Settings: settings},
		}})
		if err != nil {
			t.Logf("entry %d again: %v", i, err)
			leader = l.Leader()
			i--
		}
	}
}
