// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

// Endpoint is one process's side of mutual TLS, for both ports and both directions. TLS 1.3 only, no session
// tickets: each handshake proves the certificate anew, with the files and the membership as they are then.
type Endpoint struct {
	Source   *Source        // nil: a stranger, who has no certificate yet; only Roots
	Roots    *x509.CertPool // of a stranger: whom it takes for a member
	Self     Self           // nil: belongs to no group, as people's clients
	OrNewer  bool           // for agents, see Membership
	Refusals *Refusals      // of connections that came in; only servers need it
	// Enrols says that who has no certificate may connect to the API port, to enrol. How many may, and for how long, is for the
	// listener to say.
	Enrols bool
	// Revoked is asked about everybody's certificate, of those who connect and of those who are connected to; nil: about nobody's.
	Revoked Revoked
	// Clients has the connections that EndStale may end; nil: none is, and each outlives its certificate.
	Clients *Clients
	// Dialed has the connections that we made, of which EndStale ends those to members whose certificates were revoked since; nil: none is.
	Dialed *Dialed
	Now    func() time.Time // nil: time.Now
}

// Membership is what this process belongs to now.
func (e *Endpoint) Membership() Membership {
	if e.Self == nil {
		return Membership{}
	}
	m := e.Self()
	m.OrNewer = e.OrNewer
	return m
}

// Server gives the configuration for accepting connections on a port. It never goes stale. The connections below
// TLS should be *Conn; see Listener.
func (e *Endpoint) Server(port Port) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return e.greet(port, hello)
		},
	}
}

// greet decides about the membership that a client names, before it has proven who it is: what follows from
// it is at most a refusal and a log line. The refusal is the alert no_application_protocol, which Explain
// recognizes at the other end.
func (e *Endpoint) greet(port Port, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	ours, remote := e.Membership(), hello.Conn.RemoteAddr()
	theirs, named, err := port.offered(hello.SupportedProtos)
	refuse := func(reason, remedy string, level slog.Level, err error) {
		e.Refusals.record(refusal{
			port: port, remote: remote, reason: reason, ours: ours, theirs: theirs, remedy: remedy, level: level, err: err,
		})
	}
	config := e.serverConfig(port, hello, ours, theirs)
	switch verdict := Meet(ours, theirs); {
	case err != nil:
		refuse(reasonMembership, "run releases that know each other on both sides", slog.LevelWarn, err)
		return nil, err
	case port == Raft && !named:
		err := fmt.Errorf("client of the Raft port names no membership among %q", hello.SupportedProtos)
		refuse(reasonProtocol, "only members of a group connect to this port; the API listens on another", slog.LevelWarn, err)
		return nil, err
	case verdict == WeOutdated:
		refuse(verdict.Reason(), verdict.Remedy(), slog.LevelError, errors.New("our group was recovered without this member"))
		config.NextProtos = []string{port.protocol(ours)} // not among those offered
	case verdict != Welcome:
		refuse(verdict.Reason(), verdict.Remedy(), slog.LevelWarn, errors.New("memberships differ"))
		config.NextProtos = []string{port.protocol(ours)}
	case port == Raft:
		config.NextProtos = []string{port.protocol(theirs)}
	default:
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	if conn, ok := hello.Conn.(*Conn); ok {
		conn.offer.Store(&theirs)
	}
	return config, nil
}

func (e *Endpoint) serverConfig(port Port, hello *tls.ClientHelloInfo, ours, theirs Membership) *tls.Config {
	material, conn := e.Source.Material(), hello.Conn
	mayEnrol := port == API && e.Enrols && slices.Contains(hello.SupportedProtos, protocolEnrol)
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		Time:                   e.Now,
		Certificates:           []tls.Certificate{material.Certificate},
		// The chain is verified in VerifyConnection, because crypto/tls would refuse without telling us.
		ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(state tls.ConnectionState) error {
			var refused *refusal
			if mayEnrol && len(state.PeerCertificates) == 0 {
				refused = admitStranger(conn)
			} else {
				refused = e.admit(port, material.Roots, theirs, state.PeerCertificates)
			}
			if refused == nil {
				e.keep(conn, client{port: port, ours: ours, theirs: theirs, chain: state.PeerCertificates, roots: material.Roots})
				return nil
			}
			refused.port, refused.remote, refused.ours, refused.theirs = port, conn.RemoteAddr(), ours, theirs
			refused.level = slog.LevelWarn
			e.Refusals.record(*refused)
			if conn, ok := conn.(*Conn); ok {
				conn.refused.Store(true)
			}
			return refused.err
		},
	}
}

// admit decides about a client's certificate; nil means that it is in order.
func (e *Endpoint) admit(port Port, roots *x509.CertPool, theirs Membership, chain []*x509.Certificate) *refusal {
	if len(chain) == 0 {
		return &refusal{
			reason: reasonNoCert, err: errors.New("client sent no certificate"),
			remedy: "name a certificate made by `fairlead pki issue`",
		}
	}
	id, idErr := Identify(chain[0])
	claimed := chain[0].Subject.CommonName
	if idErr == nil {
		claimed = id.String()
	}
	chains, err := chain[0].Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediatesOf(chain),
		CurrentTime:   clock(e.Now)(),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		reason := certReason(err)
		err = fmt.Errorf("client certificate %s: %w", claimed, err)
		return &refusal{reason: reason, claimed: claimed, remedy: certRemedy(reason), err: err}
	}
	if idErr != nil {
		return &refusal{reason: reasonNoIdentity, claimed: claimed, remedy: certRemedy(reasonNoIdentity), err: idErr}
	}
	if err := checkVoucher(id, chains); err != nil {
		return &refusal{reason: reasonRole, identity: id.String(), remedy: certRemedy(reasonRole), err: err}
	}
	if port == Raft && id.Role != Member {
		err := fmt.Errorf("the Raft port is for members, not for %s", id)
		return &refusal{reason: reasonRole, identity: id.String(), remedy: certRemedy(reasonRole), err: err}
	}
	if theirs.OrNewer && id.Role == Member {
		err := fmt.Errorf("%s is a member, it may not follow its group into a newer epoch", id)
		return &refusal{reason: reasonMemberNewer, identity: id.String(), remedy: PeerOutdated.Remedy(), err: err}
	}
	if why := e.Revoked.Of(id, chain[0]); why != "" {
		err := fmt.Errorf("client certificate %s, serial number %s: %s", id, Serial(chain[0]), why)
		return &refusal{reason: reasonRevoked, identity: id.String(), remedy: certRemedy(reasonRevoked), err: err}
	}
	return nil
}

// Client gives the configuration for one connection to a member at address (host:port). The member must prove
// that it is one and that it answers at that host. Errors: address is malformed.
func (e *Endpoint) Client(port Port, address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w; write host:port", address, err)
	}
	if e.Source == nil {
		return e.strangersClient(host, address), nil
	}
	material, offer := e.Source.Material(), port.protocol(e.Membership())
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		Time:       e.Now,
		ServerName: host,
		RootCAs:    material.Roots,
		// Sent whatever CAs the server asks for: it can then say what is wrong with ours.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &material.Certificate, nil
		},
		NextProtos: []string{offer},
		VerifyConnection: func(state tls.ConnectionState) error {
			if port == Raft && state.NegotiatedProtocol != offer {
				return fmt.Errorf("%s does not speak the Raft protocol of %s", address, offer)
			}
			if err := checkServer(state.PeerCertificates[0], address); err != nil {
				return err
			}
			return e.checkRevoked(state.PeerCertificates[0], address)
		},
	}
	if port == API {
		config.NextProtos = []string{"h2", "http/1.1", offer}
	}
	return config, nil
}

func checkServer(cert *x509.Certificate, address string) error {
	id, err := Identify(cert)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if id.Role != Member {
		return fmt.Errorf("%s answers as %s, which is no member", address, id)
	}
	return nil
}
