// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

// design §6, coming back: hashicorp/raft keeps no commit index, so a member that returns alone has only its newest
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
	begin := time.Now()
	commitEntries(t, l, entries)
	t.Logf("%d entries were committed in %v", entries, time.Since(begin))
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

// commitEntries commits n log entries and more, as members would. An election in between costs a repeat.
//
// Two callers in each of the two queues are as many as have an entry each: what else came meanwhile would share the next one.
func commitEntries(t *testing.T, l *lab.Lab, n int) {
	t.Helper()
	source, err := pki.OpenSource(l.Members[0].Files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := l.Status()
	if !ok {
		t.Fatal("no status")
	}
	self := func() pki.Membership { return pki.Membership{Group: s.Group, Epoch: s.Epoch} }
	clients := map[*lab.Member]*admin.Client{}
	for _, m := range l.Members {
		clients[m] = admin.NewClient(admin.ClientOptions{
			Endpoint: &pki.Endpoint{Source: source, Self: self}, Servers: []string{m.Address + ":7443"},
		})
		defer clients[m].Close()
	}
	before := applied(l)
	for leader := l.Leader(); ; leader = l.Leader() {
		left := n - int(applied(l)-before)
		if left <= 0 {
			return
		}
		var callers errgroup.Group
		for i, u := range []cluster.Urgency{cluster.Bulk, cluster.Bulk, cluster.Urgent, cluster.Urgent} {
			callers.Go(func() error {
				for j := range left/4 + 1 {
					_, err := records.Forward(context.Background(), clients[leader].Record, fsm.Epoch(s.Epoch), u, []fsm.Proposal{{
						Actor: "test", AtUnixMilli: int64(j), Command: &fsm.PutSettings{Settings: fsm.Settings{Unsteered: true, HistoryLimit: uint32(1 + (4*j+i)%64)}},
					}})
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := callers.Wait(); err != nil {
			t.Logf("%d entries and more again: %v", left/4, err)
		}
	}
}

// applied is how far the group has come in its log.
func applied(l *lab.Lab) (index uint64) {
	l.Eventually("how far the group is", func() error {
		s, ok := l.Status()
		if !ok {
			return errors.New("nobody says")
		}
		for _, m := range s.Members {
			index = max(index, m.Applied)
		}
		return nil
	})
	return index
}
