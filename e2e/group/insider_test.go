// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/e2e/lab"
)

// insider floods members with a certificate of its own.
type insider struct {
	t       *testing.T
	l       *lab.Lab
	running sync.WaitGroup
	limited atomic.Int64 // calls that were refused for what their certificate asked for
}

// floods calls each member from some goroutines until ctx ends, by a connection each.
func (in *insider) floods(ctx context.Context, role pki.Role, name string, callers int, call func(ctx context.Context, client *admin.Client, i int) error) {
	source, err := pki.OpenSource(in.l.Issue(role, name), slog.New(slog.DiscardHandler))
	if err != nil {
		in.t.Fatal(err)
	}
	for _, m := range in.l.Members {
		for range callers {
			client := admin.NewClient(admin.ClientOptions{Endpoint: &pki.Endpoint{Source: source}, Servers: []string{m.Address + ":7443"}})
			in.running.Go(func() {
				defer client.Close()
				for i := 0; ctx.Err() == nil; i++ {
					within, cancel := context.WithTimeout(ctx, 2*time.Second)
					if errors.Is(call(within, client, i), admin.Busy) {
						in.limited.Add(1)
					}
					cancel()
				}
			})
		}
	}
}

// settings has connections send SETTINGS without end, until the test ends.
func (in *insider) settings(t *testing.T, role pki.Role, name string) {
	t.Helper()
	files := in.l.Issue(role, name)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := come(t)
	for _, m := range in.l.Members {
		s.hold(8, "127.0.0.67", m.Address+":7443", settings([]tls.Certificate{pair}))
	}
	in.l.Eventually("frames that are read slowly", func() error { return slowedDown(t, in.l) })
}

// boots register one boot after the other, which goes before all that can wait.
func boots(length int) func(context.Context, *admin.Client, int) error {
	return func(ctx context.Context, client *admin.Client, i int) error {
		stream, err := client.Agent.Sync(ctx, &fairleadv1.SyncRequest{Node: "n4", Boot: fmt.Sprintf("%0*d", length, time.Now().UnixNano()+int64(i))})
		if err != nil {
			return err
		}
		defer stream.Close()
		stream.Receive()
		return stream.Err()
	}
}

// acknowledges says of boots that nobody registered what they carried out.
func acknowledges(ctx context.Context, client *admin.Client, i int) error {
	req := &fairleadv1.AcknowledgeRequest{Node: "n4", Boot: fmt.Sprint("other", i), Revision: &fairleadv1.Revision{Epoch: 1, Index: 1}}
	for j := range 1024 {
		req.Failed = append(req.Failed, &fairleadv1.FailedAddress{Address: fmt.Sprintf("10.%d.%d.%d/32", i%250, j/250, j%250), Why: strings.Repeat("x", 500)})
	}
	_, err := client.Agent.Acknowledge(ctx, req)
	return err
}

// beats reports on subjects without end.
func beats(ctx context.Context, client *admin.Client, i int) error {
	stream, err := client.Agent.Heartbeat(ctx)
	if err != nil {
		return err
	}
	for n := 0; ctx.Err() == nil; n++ {
		report := &fairleadv1.ProbeReport{More: true}
		for j := range 40 {
			report.Services = append(report.Services, &fairleadv1.ServiceReport{Name: fmt.Sprintf("%0300d", (i*1_000_000+n)*40+j)})
		}
		if err := stream.Send(&fairleadv1.HeartbeatRequest{Node: "n4", Boot: "b", Answer: true, Probes: report}); err != nil {
			break
		}
	}
	if _, err = stream.Receive(); errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// bombs has members plan what a short text stands for.
func bombs(ctx context.Context, client *admin.Client, _ int) error {
	text := "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec:\n  a: &a \"" + strings.Repeat("x", 200<<10) + "\"\n  l: [" + strings.Repeat("*a,", 60<<10) + "]\n"
	_, err := client.Record.Plan(ctx, &fairleadv1.PlanRequest{Files: []*fairleadv1.PlanRequest_File{{Name: "x.yaml", Data: []byte(text)}}})
	return err
}

// Whoever has the certificate of an agent or of a viewer, and floods all members with it, costs the group no leader and no change, and members
// no memory beyond a bound.
func TestInsidersWhoFloodCostNothing(t *testing.T) {
	l := started(t, lab.Options{Log: "info"})
	l.Manifests.Node(4, true) // whose agent it is, and where no traffic goes
	l.Agreed()
	stands := func() string { // also where a leader was lost and won again
		elections := 0
		for _, m := range l.Members {
			elections += strings.Count(m.Log(), "leadership won")
		}
		return fmt.Sprintf("%s, %d elections", standing(t, l), elections)
	}
	before, missing := stands(), l.NeverMissing(prefix(0))
	in := &insider{t: t, l: l}
	defer in.running.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in.floods(ctx, pki.Agent, "n4", 2, boots(128))
	in.floods(ctx, pki.Agent, "n4", 1, boots(900<<10))
	in.floods(ctx, pki.Agent, "n4", 2, acknowledges)
	in.floods(ctx, pki.Agent, "n4", 2, beats)
	in.floods(ctx, pki.Viewer, "v", 2, bombs)
	in.settings(t, pki.Agent, "n4")
	most, ended, answered, until := 0, starved(), asked(t, l), time.Now().Add(attackFor(t, 0))
	for i := 1; i <= 5 || time.Now().Before(until); i++ { // changes go on meanwhile
		of := 1 + i%5
		l.Manifests.Service(of, 1+i%3)
		l.Bird.WaitNextHops(prefix(of), lab.NodeAddress(1+i%3))
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			for _, m := range l.Members {
				n, err := m.Memory()
				if err != nil {
					t.Fatal(err)
				}
				most = max(most, n)
			}
		}
	}
	slowest, worst := answered(), ended()
	judgeStanding(t, before, stands(), worst)
	judgeAnswers(t, slowest, worst)
	missing()
	cancel()
	in.running.Wait()
	if most > mostMemory {
		t.Errorf("a member had %d MiB", most>>20)
	}
	if in.limited.Load() == 0 {
		t.Error("nobody was told that it is too much")
	}
	t.Logf("%d calls over a limit; at most %d MiB", in.limited.Load(), most>>20)
	l.Agreed()
}
