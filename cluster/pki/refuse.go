// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// refusal is one connection that did not come to be.
type refusal struct {
	port     Port
	remote   net.Addr
	reason   string // for logs and metrics, from a fixed set
	identity string // proven, or empty
	claimed  string // what an unproven certificate says, or empty
	ours     Membership
	theirs   Membership
	remedy   string
	level    slog.Level
	err      error
}

// The reasons that are not verdicts.
const (
	reasonProtocol    = "no-common-protocol"
	reasonMembership  = "bad-membership"
	reasonNoCert      = "no-certificate"
	reasonUnknownCA   = "unknown-ca"
	reasonExpired     = "expired"
	reasonBadCert     = "bad-certificate"
	reasonNoIdentity  = "no-identity"
	reasonRole        = "wrong-role"
	reasonMemberNewer = "member-follows-epochs"
)

// certReason sorts verification errors of crypto/x509.
func certReason(err error) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // also not valid yet
		return reasonExpired
	case errors.As(err, &unknown):
		return reasonUnknownCA
	default:
		return reasonBadCert
	}
}

func certRemedy(reason string) string {
	switch reason {
	case reasonExpired:
		return "issue it anew with `fairlead pki issue`, and compare the clocks of both machines"
	case reasonUnknownCA:
		return "issue it from this group's CA, or add its CA to this member's ca.crt while rotating"
	default:
		return "issue it anew with `fairlead pki issue` in the role that this port wants"
	}
}

const (
	// A refused peer tries again several times a second; one line in this time is enough to be seen.
	repeatAfter = 10 * time.Second
	// Bounds what strangers can make us remember.
	maxRemembered = 1024
)

// Refusals logs and counts refused handshakes; one serves all ports of a member. A peer that keeps trying is
// logged every ten seconds and counted each time.
type Refusals struct {
	log     *slog.Logger
	now     func() time.Time
	counter *prometheus.CounterVec

	mu   sync.Mutex
	seen map[string]*repeated
}

type repeated struct {
	logged     time.Time
	suppressed int
}

// NewRefusals makes fairlead_handshakes_refused_total{port,reason} in metrics. now may be nil.
func NewRefusals(log *slog.Logger, metrics prometheus.Registerer, now func() time.Time) (*Refusals, error) {
	r := &Refusals{
		log: log,
		now: clock(now),
		counter: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_handshakes_refused_total",
			Help: "Connections refused for their certificate, role, group or epoch.",
		}, []string{"port", "reason"}),
		seen: map[string]*repeated{},
	}
	if err := metrics.Register(r.counter); err != nil {
		return nil, fmt.Errorf("register metrics of handshakes: %w", err)
	}
	return r, nil
}

func (r *Refusals) record(f refusal) {
	r.counter.WithLabelValues(string(f.port), f.reason).Inc()
	suppressed, ok := r.due(f)
	if !ok {
		return
	}
	r.log.LogAttrs(context.Background(), f.level, "handshake refused",
		slog.String("port", string(f.port)),
		slog.String("remote", f.remote.String()),
		slog.String("reason", f.reason),
		slog.String("identity", f.identity),
		slog.String("claimed", f.claimed),
		slog.String("ours", f.ours.String()),
		slog.String("theirs", f.theirs.String()),
		slog.Any("err", f.err),
		slog.String("remedy", f.remedy),
		slog.Int("suppressed", suppressed),
	)
}

// due tells whether it is time for a log line, and how many were left out since the last one.
func (r *Refusals) due(f refusal) (suppressed int, ok bool) {
	host, _, err := net.SplitHostPort(f.remote.String())
	if err != nil {
		host = f.remote.String()
	}
	key := string(f.port) + " " + f.reason + " " + host
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.seen[key]
	if known && now.Sub(last.logged) < repeatAfter {
		last.suppressed++
		return 0, false
	}
	if !known {
		r.forget(now)
		last = &repeated{}
		r.seen[key] = last
	}
	suppressed, last.suppressed, last.logged = last.suppressed, 0, now
	return suppressed, true
}

// forget makes room once too much is remembered: first what is old, and if nothing is, everything.
func (r *Refusals) forget(now time.Time) {
	if len(r.seen) < maxRemembered {
		return
	}
	for key, entry := range r.seen {
		if now.Sub(entry.logged) >= repeatAfter {
			delete(r.seen, key)
		}
	}
	if len(r.seen) >= maxRemembered {
		clear(r.seen)
	}
}
