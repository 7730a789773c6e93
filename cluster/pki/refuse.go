// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	ended    bool // it had come to be, and ends now
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
	reasonRevoked     = "revoked"
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
	case reasonRevoked:
		return "nothing, if its key was stolen; else `fairlead pki list` shows who revoked it, and `fairlead pki revoke --undo` takes that back"
	default:
		return "issue it anew with `fairlead pki issue` in the role that this port wants"
	}
}

// Refusals logs and counts refused handshakes; one serves all ports of a member. A peer that keeps trying is
// logged every ten seconds and counted each time.
type Refusals struct {
	log     *slog.Logger
	repeats *Repeats
	counter *prometheus.CounterVec
}

// NewRefusals makes fairlead_handshakes_refused_total{port,reason} in metrics. now may be nil.
func NewRefusals(log *slog.Logger, metrics prometheus.Registerer, now func() time.Time) (*Refusals, error) {
	r := &Refusals{
		log:     log,
		repeats: NewRepeats(now),
		counter: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_handshakes_refused_total",
			Help: "Connections refused, or ended, for their certificate, role, group or epoch.",
		}, []string{"port", "reason"}),
	}
	if err := metrics.Register(r.counter); err != nil {
		return nil, fmt.Errorf("register metrics of handshakes: %w", err)
	}
	return r, nil
}

func (r *Refusals) record(f refusal) {
	r.counter.WithLabelValues(string(f.port), f.reason).Inc()
	suppressed, ok := r.repeats.Due(string(f.port) + " " + f.reason + " " + hostOf(f.remote))
	if !ok {
		return
	}
	what := "handshake refused"
	if f.ended {
		what = "connection ended"
	}
	r.log.LogAttrs(context.Background(), f.level, what,
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

// hostOf leaves out the port, which is another one for each attempt.
func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return host
}
