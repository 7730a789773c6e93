// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

// group is members as processes, and a way to hand each of them commands as members do.
type group struct {
	*lab.Lab
	t       *bench
	epoch   fsm.Epoch
	clients map[string]*admin.Client // by member
}

func startGroup(t *bench) *group { return joinGroup(t, lab.New(t, lab.Options{Log: "warn"})) }

// joinGroup waits until the members of a lab are a group.
func joinGroup(t *bench, l *lab.Lab) *group {
	g := &group{Lab: l, t: t, clients: map[string]*admin.Client{}}
	g.Leader()
	g.Agreed()
	status, ok := g.Status()
	if !ok {
		t.Fatal("the group does not answer")
	}
	g.epoch = fsm.Epoch(status.Epoch)
	source, err := pki.OpenSource(g.Members[0].Files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := &pki.Endpoint{Source: source, Self: func() pki.Membership { return pki.Membership{Group: status.Group, Epoch: status.Epoch} }}
	for _, m := range g.Members {
		g.clients[m.Name] = admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{m.Address + ":7443"}})
		t.Cleanup(g.clients[m.Name].Close)
	}
	return g
}

// commands are n harmless and small ones, on 10,000 objects in turn.
func commands(from, n int) []fsm.Proposal {
	out := make([]fsm.Proposal, n)
	for i := range out {
		out[i] = fsm.Proposal{Actor: "member/bench", Reason: "benchmark", Command: &fsm.PutRegister{
			ID: fsm.RegisterID(fmt.Sprintf("default/bench-%d", (from+i)%10_000)), UID: "u", Version: 1, Spec: []byte(`{"bench":true}`),
		}}
	}
	return out
}

// propose hands commands to a member and waits until they are committed and applied there.
func (g *group) propose(ctx context.Context, member string, u cluster.Urgency, proposals []fsm.Proposal) error {
	outcomes, err := records.Forward(ctx, g.clients[member].Record, g.epoch, u, proposals)
	for _, o := range outcomes {
		err = errors.Join(err, o.Err())
	}
	return err
}

// usage is what a process has used, and those that it started and that run: a member's BGP speaker is one. What they share of their program's
// file counts for each.
type usage struct {
	CPUSeconds float64 `json:"cpu_s"`
	RSSMB      float64 `json:"rss_mb"`
	PeakRSSMB  float64 `json:"peak_rss_mb"`
	// AnonMB and FileMB are what RSSMB consists of: memory of the process, and of files, mostly its program.
	AnonMB float64 `json:"anon_mb"`
	FileMB float64 `json:"file_mb"`
}

func usageOf(pid int) usage {
	u := usageAlone(pid)
	for _, child := range lab.Children(pid) {
		c := usageOf(child)
		u.CPUSeconds, u.RSSMB, u.PeakRSSMB = u.CPUSeconds+c.CPUSeconds, u.RSSMB+c.RSSMB, u.PeakRSSMB+c.PeakRSSMB
		u.AnonMB, u.FileMB = u.AnonMB+c.AnonMB, u.FileMB+c.FileMB
	}
	return u
}

func usageAlone(pid int) usage {
	var u usage
	dir := fmt.Sprintf("/proc/%d/", pid)
	if text, err := os.ReadFile(dir + "status"); err == nil {
		for line := range strings.Lines(string(text)) {
			switch fields := strings.Fields(line); {
			case len(fields) < 2:
			case fields[0] == "VmRSS:":
				u.RSSMB = kilobytes(fields[1])
			case fields[0] == "RssAnon:":
				u.AnonMB = kilobytes(fields[1])
			case fields[0] == "RssFile:":
				u.FileMB = kilobytes(fields[1])
			case fields[0] == "VmHWM:":
				u.PeakRSSMB = kilobytes(fields[1])
			}
		}
	}
	if text, err := os.ReadFile(dir + "stat"); err == nil {
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			const ticksPerSecond = 100 // USER_HZ, the same on every architecture
			u.CPUSeconds = (number(fields[11]) + number(fields[12])) / ticksPerSecond
		}
	}
	return u
}

func kilobytes(s string) float64 { return number(s) / 1024 }

func number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return n
}

// usages is what each member and the switch have used.
func (g *group) usages() map[string]usage {
	out := map[string]usage{"bird": usageOf(g.Bird.PID())}
	for _, m := range g.Members {
		if m.Runs() {
			out[m.Name] = usageOf(m.PID())
		}
	}
	return out
}

// soon bounds one attempt to commit.
const soon = 10 * time.Second
