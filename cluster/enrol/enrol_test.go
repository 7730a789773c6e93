// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/fsm"
)

func TestOneTimeTokenGivesOneCertificateOfItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	token := w.offer(t, m, "n1", time.Hour)
	if e := w.offered(token); e == nil || e.Node != "n1" || e.TTL != time.Hour || e.Used {
		t.Fatalf("record of the token: %+v", e)
	}
	for name, c := range map[string]struct{ node, token, why string }{
		"other-node":  {"n2", token, "the one-time token is for node n1"},
		"other-token": {"n1", enrol.NewToken(), "not known, or its time is over"},
		"no-name":     {"N 1", token, "not a DNS name"},
	} {
		if err := w.host(t, c.token).enrol(t, c.node, m); err == nil || !strings.Contains(m.log.String(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.offered(token).Used {
		t.Fatal("a refused call spent the token")
	}
	h := w.host(t, token)
	if err := h.enrol(t, "n1", m); err != nil {
		t.Fatal(err)
	}
	held := pkitest.Open(t, h.files).Material()
	if held.Identity.String() != "agent/n1" || time.Until(held.Certificate.Leaf.NotAfter) > pki.MachineTTL {
		t.Errorf("certificate of %s until %s", held.Identity, held.Certificate.Leaf.NotAfter)
	}
	if info, err := os.Stat(h.files.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info, err)
	}
	again := w.host(t, token).enrol(t, "n1", m)
	if again == nil || !strings.Contains(again.Error(), "the token does not prove it") || strings.Contains(again.Error(), "used") {
		t.Errorf("told the second one: %v", again)
	}
	if !strings.Contains(m.log.String(), "used already") {
		t.Error("the log does not say that the token was used")
	}
	if got := m.counted(t); got["enrol/granted"] != 1 || got["enrol/forbidden"] != 3 || got["enrol/invalid"] != 1 || got["offer/granted"] != 1 {
		t.Errorf("counted %v", got)
	}
	if hasSecret(m.log.String(), token) {
		t.Error("a token is in the log")
	}
}

// Of several who show a token at the same time one gets a certificate.
func TestRacingForOneTokenHasOneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	two := w.serve(t, "m2", enrol.Options{Signer: w.ca.Authority(t)})
	token := w.offer(t, one, "n1", time.Hour)
	const racers = 8
	var together, racing sync.WaitGroup
	var won atomic.Int32
	together.Add(racers)
	w.group.Change(func(k *grouptest.Knobs) {
		k.Before = func(c fsm.Command) { // nobody spends it before all have seen that it is good
			if _, spends := c.(*fsm.UseEnrolment); spends {
				together.Done()
				together.Wait()
			}
		}
	})
	for i := range racers {
		h, m := w.host(t, token), []*member{one, two}[i%2]
		racing.Go(func() {
			if h.enrol(t, "n1", m) == nil {
				won.Add(1)
			}
		})
	}
	racing.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d certificates for one token", won.Load())
	}
}

// reviewer is a Kubernetes that knows one token.
type reviewer struct {
	token  string
	review enrol.Review
	err    error
}

func (r *reviewer) Review(_ context.Context, token string) (enrol.Review, error) {
	if r.err != nil || token != r.token {
		return enrol.Review{Why: "unknown"}, r.err
	}
	return r.review, nil
}

var quiet = slog.New(slog.DiscardHandler)

const jwt = "aGVhZA.Ym9keQ.c2ln"

func TestServiceAccountTokenProvesTheNodeThatItIsBoundTo(t *testing.T) {
	t.Parallel()
	good := enrol.Review{
		Authenticated: true, Username: "system:serviceaccount:kube-system:fairlead-agent", Audiences: []string{enrol.Audience}, Node: "n1",
	}
	for name, c := range map[string]struct {
		spoil func(*reviewer)
		why   string // empty: enrolled
	}{
		"good":            {func(*reviewer) {}, ""},
		"other-token":     {func(r *reviewer) { r.token = "x.y.z" }, "Kubernetes does not know the token"},
		"other-audience":  {func(r *reviewer) { r.review.Audiences = []string{"vault"} }, "not for fairlead"},
		"other-account":   {func(r *reviewer) { r.review.Username = "system:serviceaccount:default:fairlead-agent" }, "not system:serviceaccount:kube-system:fairlead-agent's"},
		"other-node":      {func(r *reviewer) { r.review.Node = "n2" }, "bound to node n2"},
		"unbound":         {func(r *reviewer) { r.review.Node = "" }, "bound to no node"},
		"kubernetes-away": {func(r *reviewer) { r.err = errors.New("no route to host") }, "cannot be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := &reviewer{token: jwt, review: good}
			c.spoil(r)
			m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t), Reviewer: r})
			h := w.host(t, jwt)
			err := h.enrol(t, "n1", m)
			if (err == nil) != (c.why == "") || !strings.Contains(m.log.String(), c.why) {
				t.Fatalf("got %v; the log says\n%s", err, m.log)
			}
			if _, statErr := os.Stat(h.files.Cert); (statErr == nil) != (c.why == "") {
				t.Errorf("certificate: %v", statErr)
			}
			if hasSecret(m.log.String(), jwt) {
				t.Error("the token is in the log")
			}
		})
	}
}

// Who has not the CA's key hands on, once; a token is not spent where nobody can sign.
func TestMemberWithoutTheKeyHandsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keyed := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	bare := w.serve(t, "m2", enrol.Options{})
	through := w.serve(t, "m3", enrol.Options{}, bare, keyed)
	alone := w.serve(t, "m4", enrol.Options{}, bare)
	token := w.offer(t, through, "n1", time.Hour)
	if err := w.host(t, token).enrol(t, "n1", alone); err == nil || !strings.Contains(err.Error(), "no member that answers can sign certificates") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without anybody who signs: %v", err)
	}
	if w.offered(token).Used {
		t.Fatal("the token is spent")
	}
	h := w.host(t, token)
	if err := h.enrol(t, "n1", through); err != nil {
		t.Fatal(err)
	}
	before := pkitest.Open(t, h.files).Material().Certificate.Leaf.SerialNumber
	held := pkitest.Open(t, h.files)
	peers := admin.NewPeers(&pki.Endpoint{Source: held}, nil)
	defer peers.Close()
	for name, members := range map[string][]string{"renew": {through.address}, "without anybody who signs": {alone.address}} {
		err := enrol.Get(t.Context(), h.files, enrol.AsAgent("n1", func() []enrol.Other { return enrol.Members(peers, members) }))
		if (err == nil) != (name == "renew") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if held.Material().Certificate.Leaf.SerialNumber.Cmp(before) == 0 {
		t.Error("the certificate is the old one")
	}
	if got := keyed.counted(t); got["enrol/granted"] != 1 || got["renew/granted"] != 1 {
		t.Errorf("m1 counted %v", got)
	}
	if !strings.Contains(keyed.log.String(), "forwarded_by=m3") {
		t.Error("m1 does not say who handed the renewal on")
	}
}

func TestMemberRenewsItsNameAndHostsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keyed := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	bare := w.serve(t, "m2", enrol.Options{})
	before := bare.source.Material().Certificate.Leaf
	to := func() []enrol.Other { return enrol.Members(bare.peers, []string{keyed.address}) }
	if err := enrol.Get(t.Context(), bare.files, enrol.AsMember("m1", to)); !errorHas(err, "nobody may speak for another") {
		t.Errorf("as another member: %v", err)
	}
	if err := enrol.Get(t.Context(), bare.files, enrol.AsMember("m2", to)); err != nil {
		t.Fatal(err)
	}
	after := bare.source.Material().Certificate.Leaf
	if after.SerialNumber.Cmp(before.SerialNumber) == 0 || strings.Join(pki.HostsOf(after), " ") != "127.0.0.1" {
		t.Errorf("serial %v, hosts %v", after.SerialNumber, pki.HostsOf(after))
	}
	// One with the key asks nobody.
	if err := enrol.Get(t.Context(), keyed.files, enrol.BySigning(w.ca.Authority(t), keyed.source)); err != nil {
		t.Fatal(err)
	}
	if got := keyed.source.Material(); got.Identity.String() != "member/m1" || strings.Join(pki.HostsOf(got.Certificate.Leaf), " ") != "127.0.0.1" {
		t.Errorf("%s at %v", got.Identity, pki.HostsOf(got.Certificate.Leaf))
	}
}

func errorHas(err error, part string) bool { return err != nil && strings.Contains(err.Error(), part) }

func TestOneHostCannotGuessQuickly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t), Now: func() time.Time { return now }})
	for range 10 {
		if err := w.host(t, enrol.NewToken()).enrol(t, "n1", m); !errorHas(err, "does not prove") {
			t.Fatal(err)
		}
	}
	if err := w.host(t, enrol.NewToken()).enrol(t, "n1", m); !errorHas(err, "too many enrolments") {
		t.Errorf("the eleventh: %v", err)
	}
	if got := m.counted(t); got["enrol/forbidden"] != 10 || got["enrol/busy"] != 1 {
		t.Errorf("counted %v", got)
	}
	if proposals, _ := w.group.Proposed(); len(proposals) != 0 {
		t.Errorf("a stranger wrote %d proposals into the log", len(proposals))
	}
}

func TestTokenEndsWhenItsTimeIsOverOnTheLeadersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grouptest.NewGroup(t)
		put := func(token string, ttl time.Duration) fsm.EnrolmentID {
			g.Apply(t, &fsm.PutEnrolment{ID: enrol.Sum(token), Node: "n1", TTL: ttl})
			return enrol.Sum(token)
		}
		there := func(id fsm.EnrolmentID) bool {
			synctest.Wait()
			_, ok := fsm.Get[*fsm.Enrolment](g.Read(), fsm.TableEnrolments, string(id))
			return ok
		}
		term := func() (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			e := enrol.Expiry{Record: g, Proposer: g, Member: "m1", Log: quiet}
			go func() { defer close(done); e.Run(ctx) }()
			return func() { cancel(); <-done }
		}
		first := put("a", time.Hour)
		end := term()
		time.Sleep(30 * time.Minute)
		second := put("b", time.Hour)
		time.Sleep(30*time.Minute - time.Nanosecond)
		if !there(first) {
			t.Fatal("ended too early")
		}
		time.Sleep(time.Nanosecond)
		if there(first) || !there(second) {
			t.Fatalf("after an hour: first %v, second %v", there(first), there(second))
		}
		end()
		end = term() // another leader, who waits all of it, and longer while nobody takes what it proposes
		defer func() { end() }()
		time.Sleep(time.Hour - time.Nanosecond)
		g.Change(func(k *grouptest.Knobs) { k.Refuse = cluster.ErrBusy })
		time.Sleep(time.Minute)
		if !there(second) {
			t.Fatal("ended although nothing could be proposed")
		}
		g.Change(func(k *grouptest.Knobs) { k.Refuse = nil })
		time.Sleep(2 * time.Second)
		if there(second) {
			t.Fatal("still there")
		}
	})
}
