// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/testkit"
)

// office signs in the test's own process, on the bubble's clock.
type office struct {
	t         *testing.T
	authority *pki.Authority

	mu     sync.Mutex
	refuse error
	calls  []time.Time
}

// asked is when it was called so far.
func (o *office) asked() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.calls)
}

// works lets it sign from now on.
func (o *office) works() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refuse = nil
}

func (o *office) ask(_ context.Context, request []byte) (*fairleadv1.SignedCertificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, time.Now())
	if o.refuse != nil {
		return nil, o.refuse
	}
	signed, err := o.authority.Sign(request, pki.Request{Role: pki.Agent, Name: "n1"})
	if err != nil {
		o.t.Error(err)
		return nil, err
	}
	return &fairleadv1.SignedCertificate{Certificate: signed.Cert, Ca: signed.CA}, nil
}

// hold runs a Holder of an agent's certificate within a bubble.
func hold(t *testing.T, renew, again *office) (held *pki.Source, log *testkit.Log, stop func()) {
	t.Helper()
	ca := pkitest.New(t)
	files := ca.Issue(t, pki.Request{Role: pki.Agent, Name: "n1"})
	log = &testkit.Log{}
	o := enrol.HolderOptions{Files: files, Source: pkitest.Open(t, files), Renew: renew.ask, Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, office := range []*office{renew, again} {
		if office != nil {
			office.t = t
			office.authority = ca.Authority(t)
		}
	}
	if again != nil {
		o.Enrol = again.ask
	}
	h, err := enrol.NewHolder(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	return o.Source, log, func() { cancel(); <-done }
}

func left(s *pki.Source) time.Duration { return time.Until(s.Material().Certificate.Leaf.NotAfter) }

func TestCertificateIsRenewedForeverWithAThirdOfItsLifeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renew := &office{}
		held, _, stop := hold(t, renew, nil)
		defer stop()
		for range 10 * 24 {
			time.Sleep(time.Hour)
			synctest.Wait()
			if l := left(held); l < 5*time.Hour {
				t.Fatalf("%v left", l)
			}
		}
		if n := len(renew.asked()); n < 12 || n > 15 { // 16 to 18 hours each
			t.Errorf("renewed %d times in 10 days", n)
		}
	})
}

func TestRenewalThatFailsIsTriedAgainUntilItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renew := &office{refuse: errors.New("no member answers")}
		held, log, stop := hold(t, renew, nil)
		defer stop()
		time.Sleep(19 * time.Hour)
		synctest.Wait()
		calls := renew.asked()
		n := len(calls)
		if n < 60 || n > 200 || !strings.Contains(log.String(), "no member answers") {
			t.Fatalf("%d attempts within an hour to three", n)
		}
		if gap := calls[1].Sub(calls[0]); gap > 2*time.Second {
			t.Errorf("%v to the second attempt", gap)
		}
		if gap := calls[n-1].Sub(calls[n-2]); gap > time.Minute+time.Second {
			t.Errorf("%v between the last attempts", gap)
		}
		renew.works()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if l := left(held); l < 23*time.Hour {
			t.Errorf("%v left", l)
		}
	})
}

func TestExpiredCertificateIsReplacedByEnrollingAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renew, again := &office{refuse: errors.New("away")}, &office{}
		held, _, stop := hold(t, renew, again)
		defer stop()
		time.Sleep(24*time.Hour - time.Second)
		synctest.Wait()
		if len(again.asked()) > 0 {
			t.Fatal("enrolled anew with a good certificate")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if l := left(held); len(again.asked()) != 1 || l < 23*time.Hour {
			t.Errorf("enrolled %d times, %v left", len(again.asked()), l)
		}
	})
}

func TestExpiredCertificateWithoutAnotherWaySaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log, stop := hold(t, &office{refuse: errors.New("away")}, nil)
		defer stop()
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		if !strings.Contains(log.String(), "has expired; issue it anew with `fairlead pki issue`") {
			t.Error(log)
		}
	})
}
