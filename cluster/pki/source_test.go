// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/testkit"
)

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSourceKeepsWhatItHasUntilTheNewFilesFitTogether(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	files := issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1"})
	fresh := issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1"})
	log := &testkit.Log{}
	source, err := pki.OpenSource(files, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string { return source.Material().Certificate.Leaf.SerialNumber.String() }
	first := serial()
	for name, breakIt := range map[string]func(){
		"new-key-old-certificate": func() { copyFile(t, fresh.Key, files.Key) },
		"empty-certificate":       func() { _ = os.WriteFile(files.Cert, nil, 0o600) },
		"no-certificate":          func() { _ = os.Remove(files.Cert) },
		"garbled-ca":              func() { _ = os.WriteFile(files.CA, []byte("-----BEGIN"), 0o600) },
	} {
		breakIt()
		if got := serial(); got != first {
			t.Fatalf("%s: certificate %s in use, want %s", name, got, first)
		}
	}
	before := log.Count("not usable")
	for range 3 {
		serial()
	}
	if again := log.Count("not usable"); before == 0 || again != before {
		t.Fatalf("said %d times, then %d times, that the files are not usable", before, again)
	}
	copyFile(t, fresh.CA, files.CA)
	copyFile(t, fresh.Cert, files.Cert)
	copyFile(t, fresh.Key, files.Key)
	if serial() == first {
		t.Fatal("the new files are not used")
	}
}

func TestOpenSourceNamesTheFileAndTheRemedy(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	good := issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1"})
	other := issue(t, ca, pki.Request{Role: pki.Agent, Name: "n2"})
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct{ ca, cert, key, want string }{
		"no-ca":          {missing, good.Cert, good.Key, missing},
		"leaf-as-ca":     {good.Cert, good.Cert, good.Key, "is not a CA"},
		"no-certificate": {good.CA, missing, good.Key, missing},
		"other-key":      {good.CA, good.Cert, other.Key, other.Key},
		"ca-as-leaf":     {good.CA, filepath.Join(ca, pki.CAFile), filepath.Join(ca, pki.CAKeyFile), pki.CAFile},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pki.OpenSource(pki.Files{CA: test.ca, Cert: test.cert, Key: test.key}, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "fairlead pki") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v", err)
			}
		})
	}
}

func TestRefusalsOfOnePeerAreCountedEachAndLoggedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ca := newCA(t, pki.CAOptions{})
	source := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"}))
	s := serve(t, pki.Endpoint{Source: source, Self: belongs("g1", 1), Now: func() time.Time { return now }}, pki.Raft)
	client := &pki.Endpoint{Source: source, Self: belongs("g2", 1)}
	for range 5 {
		_, _ = s.connect(t, client, pki.Raft)
	}
	now = now.Add(11 * time.Second)
	_, _ = s.connect(t, client, pki.Raft)
	if got := s.refused(t)["raft/other-group"]; got != 6 {
		t.Errorf("counted %d", got)
	}
	if got := s.log.Count("handshake refused"); got != 2 || !strings.Contains(s.log.String(), "suppressed=4") {
		t.Errorf("logged %d times:\n%s", got, s.log)
	}
}

func TestExpiryIsShownOfTheCertificateInUse(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	files := issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1", TTL: time.Hour})
	source := pkitest.Open(t, files)
	registry := prometheus.NewRegistry()
	registry.MustRegister(pki.ExpiryGauge(source))
	shown := func() int64 {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatalf("%v, %v", families, err)
		}
		return int64(families[0].GetMetric()[0].GetGauge().GetValue())
	}
	first := shown()
	if want := source.Material().Certificate.Leaf.NotAfter.Unix(); first != want {
		t.Fatalf("%d, want %d", first, want)
	}
	issued, err := pki.Issue(ca, pki.Request{Role: pki.Agent, Name: "n1", TTL: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issued.Write(filepath.Dir(files.Cert)); err != nil {
		t.Fatal(err)
	}
	if later := shown(); later != issued.NotAfter.Unix() {
		t.Fatalf("%d after the renewal, want %d", later, issued.NotAfter.Unix())
	}
}

// A certificate that none of the CAs beside it signed is refused when it is opened: nobody in the group would take it, and that would be told by the others
// alone. One that is over is another matter, and while one CA replaces another both are in the file.
func TestCertificatesOfAnotherCAAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	ours, theirs := newCA(t, pki.CAOptions{Name: "ours"}), newCA(t, pki.CAOptions{Name: "theirs"})
	mine := issue(t, ours, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"192.0.2.1"}})
	other := issue(t, theirs, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"192.0.2.1"}})
	open := func(files pki.Files) error {
		_, err := pki.OpenTrusted(files, slog.New(slog.DiscardHandler))
		return err
	}
	err := open(pki.Files{CA: other.CA, Cert: mine.Cert, Key: mine.Key})
	for _, want := range []string{mine.Cert, other.CA, "member/m1", "ours", "none of the CAs", "pki issue"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	both := filepath.Join(t.TempDir(), "both.crt")
	var bundle []byte
	for _, path := range []string{other.CA, mine.CA} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bundle = append(bundle, data...)
	}
	if err := os.WriteFile(both, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(pki.Files{CA: both, Cert: mine.Cert, Key: mine.Key}); err != nil {
		t.Errorf("while one CA replaces another: %v", err)
	}
	long := time.Now().Add(-30 * 24 * time.Hour)
	over := issue(t, ours, pki.Request{Role: pki.Agent, Name: "n1", Now: func() time.Time { return long }})
	for _, ca := range []string{over.CA, other.CA} { // agents that were away while the CA was replaced get another one
		if err := open(pki.Files{CA: ca, Cert: over.Cert, Key: over.Key}); err != nil {
			t.Errorf("one that is over: %v", err)
		}
	}
}
