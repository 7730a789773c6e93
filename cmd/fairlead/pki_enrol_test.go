// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
)

// fakeEnrol remembers the last offer, and what became of hosts.
type fakeEnrol struct {
	fairleadv1connect.UnimplementedEnrolServiceHandler
	offer  *fairleadv1.OfferRequest
	hosts  []string
	refuse error
}

func (f *fakeEnrol) AdmitHost(_ context.Context, req *fairleadv1.AdmitHostRequest) (*fairleadv1.AdmitHostResponse, error) {
	f.hosts = append(f.hosts, "in "+req.GetName())
	return &fairleadv1.AdmitHostResponse{}, f.refuse
}

func (f *fakeEnrol) RemoveHost(_ context.Context, req *fairleadv1.RemoveHostRequest) (*fairleadv1.RemoveHostResponse, error) {
	f.hosts = append(f.hosts, "out "+req.GetName())
	return &fairleadv1.RemoveHostResponse{}, f.refuse
}

func TestHostTakesHostsInAndOut(t *testing.T) {
	w := newWorld(t)
	group := &fakeEnrol{}
	w.enrol = group
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	run := func(args ...string) ran {
		return fairlead(t, append([]string{"host", "--server", server, "--ca", w.files.CA, "--cert", w.files.Cert, "--key", w.files.Key}, args...)...)
	}
	if got := run("admit", "edge-1").mustPrint(t); !strings.Contains(got, "taken in") {
		t.Errorf("printed %q", got)
	}
	if got := run("remove", "edge-1", "-o", "json").mustPrint(t); !strings.Contains(got, `"in": false`) {
		t.Errorf("printed %q", got)
	}
	if !slices.Equal(group.hosts, []string{"in edge-1", "out edge-1"}) {
		t.Errorf("asked for %v", group.hosts)
	}
	group.refuse = &admin.Refusal{Code: admin.Invalid, What: "take out host edge-1", Why: "not found", Remedy: "list them"}
	run("remove", "edge-1").mustFail(t, exitFailed, "take out host edge-1", "list them")
	run("remove").mustFail(t, exitUsage, "want NAME")
}

func (f *fakeEnrol) Offer(_ context.Context, req *fairleadv1.OfferRequest) (*fairleadv1.OfferResponse, error) {
	f.offer = req
	return &fairleadv1.OfferResponse{}, f.refuse
}

func TestPKIEnrolPrintsATokenOfWhichTheGroupGetsTheSum(t *testing.T) {
	w := newWorld(t)
	group := &fakeEnrol{}
	w.enrol = group
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	run := func(args ...string) ran {
		return fairlead(t, append([]string{"pki", "enrol", "--server", server, "--ca", w.files.CA, "--cert", w.files.Cert, "--key", w.files.Key}, args...)...)
	}
	var got offered
	if err := json.Unmarshal([]byte(run("n1", "--ttl", "2h", "-o", "json").mustPrint(t)), &got); err != nil {
		t.Fatal(err)
	}
	if group.offer.GetNode() != "n1" || group.offer.GetTtlSeconds() != 7200 || group.offer.GetTokenSha256() != string(enrol.Sum(got.Token)) {
		t.Errorf("offered %v for %+v", group.offer, got)
	}
	if len(got.Token) < 26 || strings.Contains(group.offer.String(), got.Token) || got.GoodFor != "2h0m0s" {
		t.Errorf("printed %+v", got)
	}
	group.refuse = &admin.Refusal{Code: admin.Invalid, What: "offer a token for node n1", Why: "no", Remedy: "ask again"}
	run("n1").mustFail(t, exitFailed, "offer a token for node n1", "ask again")
	run("n1", "--ttl", "1ms").mustFail(t, exitUsage, "--ttl")
	run().mustFail(t, exitUsage, "want NAME")
	group.refuse = nil
	run("edge-1", "--outside").mustPrint(t)
	if !group.offer.GetOutside() || group.offer.GetNode() != "edge-1" {
		t.Errorf("offered %v", group.offer)
	}
}

func TestPKIRotateMakesABundleOfBothAndThenOfTheNewOne(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	ca, next := filepath.Join(dir, "ca"), filepath.Join(dir, "next")
	fairlead(t, "pki", "init", "--dir", ca, "--name", "lab").mustPrint(t)
	before, err := os.ReadFile(filepath.Join(ca, pki.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		bundle, err := os.ReadFile(filepath.Join(next, pki.CAFile))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(bundle), "BEGIN CERTIFICATE")
	}
	fairlead(t, "pki", "rotate", "--dir", ca).mustFail(t, exitUsage, "--out", "--finish")
	fairlead(t, "pki", "rotate", "--dir", ca, "--out", next).mustPrint(t)
	if after, err := os.ReadFile(filepath.Join(ca, pki.CAFile)); err != nil || string(after) != string(before) || count() != 2 {
		t.Errorf("the old folder changed (%v), or the new bundle has %d CAs", err, count())
	}
	fairlead(t, "pki", "rotate", "--dir", ca, "--out", next).mustFail(t, exitFailed, "never overwritten")
	fairlead(t, "pki", "issue", "agent", "n1", "--dir", next, "--out", filepath.Join(dir, "n1")).mustPrint(t)
	var done rotated
	if err := json.Unmarshal([]byte(fairlead(t, "pki", "rotate", "--dir", next, "--finish", "-o", "json").mustPrint(t)), &done); err != nil {
		t.Fatal(err)
	}
	if done.Dropped != 1 || count() != 1 {
		t.Errorf("finished: %+v, %d CAs", done, count())
	}
	fairlead(t, "pki", "issue", "agent", "n1", "--dir", next, "--out", filepath.Join(dir, "n1")).mustPrint(t)
}
