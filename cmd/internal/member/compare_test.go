// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/compare"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// tampered applies a command more than was agreed on, once, as another build or a fault of memory would.
type tampered struct {
	cluster.Record
	on *atomic.Bool
}

func (m tampered) ApplyEntries(entries []cluster.LogEntry) [][]cluster.Outcome {
	e := &entries[0]
	epoch, proposals, err := fsm.DecodeEntry(e.Data)
	if err != nil || !m.on.CompareAndSwap(true, false) {
		return m.Record.ApplyEntries(entries)
	}
	more := cluster.Proposal{Actor: "test", Command: &fsm.PutRegister{ID: "wrong", UID: "u", Version: 1, Spec: []byte("{}")}}
	if e.Data, err = fsm.EncodeEntry(epoch, append(proposals, more)); err != nil {
		panic(err)
	}
	outcomes := m.Record.ApplyEntries(entries)
	outcomes[0] = outcomes[0][:len(proposals)]
	return outcomes
}

// compared is a group of three, any of whom can be made wrong.
type compared struct {
	t       *testing.T
	wire    *wire
	dir     string
	list    []config.Member
	members map[string]*member.Member
	wrong   map[string]*atomic.Bool
	ended   map[string]chan error
}

func newCompared(t *testing.T) *compared {
	g := &compared{
		t: t, wire: &wire{apis: map[string]http.Handler{}}, dir: t.TempDir(),
		members: map[string]*member.Member{}, wrong: map[string]*atomic.Bool{}, ended: map[string]chan error{},
	}
	for _, name := range []string{"m1", "m2", "m3"} {
		g.list = append(g.list, config.Member{Name: name, API: name + ":7443", Raft: name + ":7444"})
	}
	for _, c := range g.list {
		g.wrong[c.Name] = &atomic.Bool{}
		m, err := g.open(c)
		if err != nil {
			t.Fatal(err)
		}
		g.members[c.Name] = m
	}
	for name, m := range g.members {
		ctx, cancel := context.WithCancel(context.Background())
		ended, done := make(chan error, 1), make(chan struct{})
		g.ended[name] = ended
		go func() { ended <- m.Run(ctx); close(done) }()
		t.Cleanup(func() { cancel(); <-done })
	}
	return g
}

func (g *compared) open(c config.Member) (*member.Member, error) {
	edges := g.wire.member()
	edges.Machine = func(r cluster.Record) cluster.Machine { return tampered{r, g.wrong[c.Name]} }
	edges.Tuning.Leader.Checkpoint = 50 * time.Millisecond
	return member.Open(config.Controller{
		Name: c.Name, DataDir: filepath.Join(g.dir, c.Name), BootstrapToken: "t",
		Advertise: config.Advertise{API: c.API, Raft: c.Raft}, Members: g.list,
	}, "test", edges, quiet)
}

func (g *compared) operator(name string) *admin.Client {
	return g.wire.client(name+":7443", caller(pki.Operator, "alice", pki.Naming(func() (string, uint64) {
		group, epoch, _ := g.members[name].Record().Identity()
		return string(group), uint64(epoch)
	})))
}

// leader waits until one of some members leads a group that all of them belong to.
func (g *compared) leader(of ...string) (leader string) {
	g.t.Helper()
	testkit.Until(g.t, "all belong and one leads", func() bool {
		leader = ""
		for _, name := range of {
			if len(fsm.List[*fsm.Member](g.members[name].Record().Read(), fsm.TableMembers)) < 3 {
				return false
			}
			if g.members[name].Leads() {
				leader = name
			}
		}
		return leader != ""
	})
	return leader
}

// commits has a member commit an entry, which decides nothing.
func (g *compared) commits(name string) {
	g.t.Helper()
	before := g.members[name].Record().Applied()
	testkit.Until(g.t, "an entry is committed", func() bool {
		_, _ = g.operator(name).Record.ReleaseHold(context.Background(), &fairleadv1.ReleaseHoldRequest{Id: "none"})
		return g.members[name].Record().Applied() > before
	})
}

// One member of three has another record than the others, whoever leads: it alone ends, says why, and does not begin again on that folder.
func TestAMemberWithAnotherRecordEndsAlone(t *testing.T) {
	for _, leads := range []bool{true, false} {
		t.Run(map[bool]string{true: "leader", false: "follower"}[leads], func(t *testing.T) {
			t.Parallel()
			g := newCompared(t)
			leader := g.leader("m1", "m2", "m3")
			wrong, right := "", []string{}
			for _, c := range g.list {
				if wrong == "" && (c.Name == leader) == leads {
					wrong = c.Name
				} else {
					right = append(right, c.Name)
				}
			}
			g.wrong[wrong].Store(true)
			g.commits(leader)
			var why error
			select {
			case why = <-g.ended[wrong]:
			case <-time.After(grouptest.Patience):
				t.Fatal("who has another record goes on")
			}
			var differs *compare.DiffersError
			if !errors.As(why, &differs) || !strings.Contains(differs.Found, strings.Join(right, ", ")) {
				t.Fatalf("it ended with %v", why)
			}
			leader = g.leader(right...)
			g.commits(leader)
			for _, name := range right {
				select {
				case err := <-g.ended[name]:
					t.Fatalf("%s, who is right, ended with %v", name, err)
				default:
				}
			}
			i := int(wrong[1] - '1')
			for range 2 {
				if _, err := g.open(g.list[i]); !errors.Is(err, compare.ErrDiffers) || !strings.Contains(err.Error(), differs.Found) || !strings.Contains(err.Error(), g.dir) {
					t.Errorf("it begins again: %v", err)
				}
			}
			if leads {
				return
			}
			status, err := g.operator(leader).Raft.Status(t.Context(), &fairleadv1.StatusRequest{})
			if err != nil {
				t.Fatal(err)
			}
			// Where it ended by the checkpoint before it told the leader what it had, nobody knows more of it than that it ended: Doubts has tests in
			// cluster/compare.
			for _, m := range status.GetMembers() {
				why := m.GetUnhealthy()
				if m.GetName() == wrong && (m.GetHealthy() || !strings.Contains(why, "another record than most") && why != "does not answer") {
					t.Errorf("status says of it: %v", m)
				}
			}
		})
	}
}
