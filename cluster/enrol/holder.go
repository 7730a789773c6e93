// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/pki"
)

// Ask gets a certificate for a request (PKCS #10, DER) from somebody who signs.
type Ask func(ctx context.Context, request []byte) (*fairleadv1.SignedCertificate, error)

// HolderOptions is what a Holder is made of. Fields without "optional" are required.
type HolderOptions struct {
	Files  pki.Files
	Source *pki.Source // of Files
	Renew  Ask
	// Enrol is another way once the certificate has expired; optional.
	Enrol Ask
	// Renewed is called after each renewal; optional. Connections that are made from then on show the new certificate.
	Renewed func()
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
}

// Holder keeps a certificate fresh. Connections that exist are not touched; new ones use the new certificate, since
// the Source reads files that changed.
type Holder struct {
	o        HolderOptions
	renewals *prometheus.CounterVec
}

// NewHolder makes a Holder. Errors: the metrics are registered already.
func NewHolder(o HolderOptions) (*Holder, error) {
	h := &Holder{o: o, renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_certificate_renewals_total",
		Help: "Attempts to renew the certificate in use, by what came of them: renewed or failed.",
	}, []string{"result"})}
	if o.Metrics != nil {
		if err := o.Metrics.Register(h.renewals); err != nil {
			return nil, fmt.Errorf("register metrics of renewals: %w", err)
		}
	}
	return h, nil
}

const (
	retryMin, retryMax = time.Second, lookEvery
	// pauseMin keeps the loop slow while a CA that is about to end gives out shorter and shorter certificates.
	pauseMin = 100 * time.Millisecond
	// lookEvery is how long the clock is not looked at: it may be set.
	lookEvery = time.Minute
	// jitterShare of the window spreads those who were certified together.
	jitterShare = 4
)

// Run renews until ctx ends, and returns its error.
func (h *Holder) Run(ctx context.Context) error {
	spread, backoff := rand.Float64()/jitterShare, time.Duration(0)
	for {
		leaf := h.o.Source.Material().Certificate.Leaf
		at, window := pki.RenewFrom(leaf)
		wait := time.Until(at.Add(time.Duration(spread * float64(window))))
		if wait <= 0 {
			err := h.renew(ctx, !time.Now().Before(leaf.NotAfter))
			if err == nil {
				spread, backoff = rand.Float64()/jitterShare, 0
			} else if ctx.Err() == nil {
				h.renewals.WithLabelValues("failed").Inc()
				h.o.Log.Warn("certificate not renewed", "not_after", leaf.NotAfter, "err", err)
				backoff = min(max(2*backoff, retryMin), retryMax)
			}
			wait = min(backoff, window/8)
		}
		select {
		case <-time.After(max(pauseMin, min(wait, lookEvery))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// renew gets another certificate, or a first one again once the present one has expired, and installs it.
func (h *Holder) renew(ctx context.Context, expired bool) error {
	ask := h.o.Renew
	if expired {
		if ask = h.o.Enrol; ask == nil {
			return fmt.Errorf("%s has expired; issue it anew with `fairlead pki issue`", h.o.Files.Cert)
		}
	}
	if err := Get(ctx, h.o.Files, ask); err != nil {
		return err
	}
	h.renewals.WithLabelValues("renewed").Inc()
	if h.o.Renewed != nil {
		h.o.Renewed()
	}
	h.o.Log.Info("certificate renewed", "not_after", h.o.Source.Material().Certificate.Leaf.NotAfter)
	return nil
}

// askWithin bounds one attempt: the members that do not answer are each given a few seconds.
const askWithin = 30 * time.Second

// Get makes a key, gets a certificate for it, and installs both with the CAs to trust. The key is written down only
// then.
func Get(ctx context.Context, files pki.Files, ask Ask) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	request, key, err := pki.NewRequest()
	if err != nil {
		return err
	}
	signed, err := ask(ctx, request)
	if err != nil {
		return err
	}
	return files.Install(signed.GetCertificate(), key, signed.GetCa())
}
