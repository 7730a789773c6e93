// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/testkit"
)

// later is a Signer whose files are known after its member was started.
type later struct{ *pki.Authority }

// holder is somebody with a certificate, and how he gets another one.
type holder struct {
	name   string
	files  pki.Files
	source *pki.Source
	ask    enrol.Ask
}

func (h *holder) renew(t *testing.T) {
	t.Helper()
	if err := enrol.Get(t.Context(), h.files, h.ask); err != nil {
		t.Fatalf("%s: %v", h.name, err)
	}
}

// bundle is how many CAs he trusts.
func (h *holder) bundle(t *testing.T) int {
	return strings.Count(content(t, h.files.CA), "BEGIN CERTIFICATE")
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func put(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, []byte(content(t, from)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// stream is an agent's stream that must never break; it counts what it hears.
type stream struct {
	heard  atomic.Int64
	broken atomic.Bool
}

func follow(t *testing.T, h *holder, node, address string) *stream {
	t.Helper()
	client := admin.NewClient(admin.ClientOptions{Endpoint: &pki.Endpoint{Source: h.source}, Servers: []string{address}})
	ctx, stop := context.WithCancel(context.Background())
	said, err := client.Agent.Sync(ctx, &fairleadv1.SyncRequest{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	s, done := &stream{}, make(chan struct{})
	go func() {
		defer close(done)
		for said.Receive() {
			s.heard.Add(1)
		}
		s.broken.Store(true)
	}()
	t.Cleanup(func() { stop(); <-done; client.Close() })
	return s
}

// The whole rotation as docs/agents.md tells it. Only the member with the key is given files; everybody else gets what
// it needs by renewing, in any order, and after each single renewal everybody still reaches everybody.
func TestCARotatesWithStreamsAliveAndNobodyLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signer := &later{}
	m1 := w.serve(t, "m1", enrol.Options{Signer: signer})
	m2 := w.serve(t, "m2", enrol.Options{}, m1)
	keyFile := filepath.Join(t.TempDir(), "ca.key")
	put(t, w.ca.Key(), keyFile)
	var err error
	if signer.Authority, err = pki.OpenAuthority(m1.files.CA, keyFile); err != nil {
		t.Fatal(err)
	}
	all := []*holder{
		{"m1", m1.files, m1.source, enrol.BySigning(signer, m1.source)},
		{"m2", m2.files, m2.source, enrol.AsMember("m2", func() []enrol.Other { return enrol.Members(m2.peers, []string{m1.address}) })},
	}
	for _, node := range []string{"n1", "n2", "n3"} {
		h := &holder{name: node, files: w.ca.Issue(t, pki.Request{Role: pki.Agent, Name: node})}
		h.source = pkitest.Open(t, h.files)
		peers := admin.NewPeers(&pki.Endpoint{Source: h.source}, nil)
		t.Cleanup(peers.Close)
		h.ask = enrol.AsAgent(node, func() []enrol.Other { return enrol.Members(peers, []string{m2.address, m1.address}) })
		all = append(all, h)
	}
	straggler := all[len(all)-1]
	streams := []*stream{follow(t, all[2], "n1", m1.address), follow(t, all[3], "n2", m2.address)}
	reachable := func() {
		t.Helper()
		for _, h := range all {
			for _, m := range []*member{m1, m2} {
				if h.name == m.source.Material().Identity.Name {
					continue
				}
				conn, err := (&pki.Endpoint{Source: h.source}).Dial(t.Context(), (&net.Dialer{}).DialContext, pki.API, m.address)
				if err == nil {
					_ = conn.SetReadDeadline(time.Now().Add(grouptest.Patience))
					_, err = conn.Read(make([]byte, 1)) // it speaks once it took our certificate
					_ = conn.Close()
				}
				if err != nil {
					t.Fatalf("%s does not reach %s: %v", h.name, m.source.Material().Identity, err)
				}
			}
		}
	}
	random := testkit.Random(t)
	everybody := func(check func(*holder) bool) {
		t.Helper()
		reachable()
		for _, i := range random.Perm(len(all)) {
			all[i].renew(t)
			reachable()
		}
		for _, h := range all {
			if !check(h) {
				t.Fatalf("%s trusts %d CAs, and has a certificate of %s", h.name, h.bundle(t), h.source.Material().Certificate.Leaf.Issuer)
			}
		}
	}
	next := pkitest.CA(filepath.Join(t.TempDir(), "next"))
	if err := pki.Rotate(string(w.ca), string(next), pki.CAOptions{Name: "next"}); err != nil {
		t.Fatal(err)
	}
	issuer := func(h *holder) string { return h.source.Material().Certificate.Leaf.Issuer.CommonName }
	put(t, next.Cert(), m1.files.CA)
	everybody(func(h *holder) bool { return h.bundle(t) == 2 && issuer(h) == "CA fairlead" })
	put(t, next.Key(), keyFile)
	all = all[:len(all)-1] // one is away from now on
	everybody(func(h *holder) bool { return h.bundle(t) == 2 && issuer(h) == "CA next" })
	if dropped, err := pki.FinishRotation(string(next)); err != nil || dropped != 1 {
		t.Fatalf("dropped %d, %v", dropped, err)
	}
	put(t, next.Cert(), m1.files.CA)
	everybody(func(h *holder) bool { return h.bundle(t) == 1 && issuer(h) == "CA next" })
	for i, s := range streams {
		before := s.heard.Load()
		testkit.Until(t, "a stream from before the rotation goes on", func() bool { return s.heard.Load() > before })
		if s.broken.Load() {
			t.Errorf("stream %d broke", i)
		}
	}
	// Who was away is refused with what he has, and enrols anew.
	anew := admin.NewPeers(&pki.Endpoint{Source: straggler.source}, nil) // its old connection is as good as any that exists
	defer anew.Close()
	asks := enrol.AsAgent("n3", func() []enrol.Other { return enrol.Members(anew, []string{m2.address, m1.address}) })
	if err := enrol.Get(t.Context(), straggler.files, asks); err == nil {
		t.Fatal("a certificate of the dropped CA is still good")
	}
	token := offer(t, next, m2, "n3", time.Hour)
	h := w.host(t, token)
	h.ca = next.Cert()
	if err := h.enrol(t, "n3", m2); err != nil {
		t.Fatal(err)
	}
}
