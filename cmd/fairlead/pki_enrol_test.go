// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
)

// fakeEnrol remembers the last offer.
type fakeEnrol struct {
	fairleadv1connect.UnimplementedEnrolServiceHandler
	offer  *fairleadv1.OfferRequest
	refuse error
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
	run().mustFail(t, exitUsage, "want NODE")
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
