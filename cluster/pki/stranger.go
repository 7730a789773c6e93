// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// protocolEnrol is what a client offers beside HTTP/2 that has no certificate yet and means it: one that merely forgot
// to name its certificate is refused as ever.
const protocolEnrol = "fairlead-enrol"

const (
	// maxStrangers bounds the connections without certificate that a member bears at a time: 1,000 agents that enrol
	// at once have their turn within seconds.
	maxStrangers = 64
	// strangersWithin is how long such a connection may last. One call is made on it.
	strangersWithin = 20 * time.Second
)

// Strangers bounds the connections to a member's API port that come without a certificate. The zero value is ready.
type Strangers struct {
	Max    int           // at a time; 0 means 64
	Within time.Duration // that each may last; 0 means 20 s
	open   atomic.Int32
}

// visit is one such connection.
type visit struct {
	strangers *Strangers
	over      *time.Timer
	once      sync.Once
}

func (v *visit) end() {
	v.once.Do(func() {
		v.over.Stop()
		v.strangers.open.Add(-1)
	})
}

// admit lets one in, if there are not too many.
func (s *Strangers) admit(conn net.Conn) *refusal {
	accepted, ok := conn.(*Conn)
	if !ok {
		return &refusal{reason: reasonProtocol, err: errors.New("the server does not watch its connections"), remedy: "wrap its listener"}
	}
	most := cmp.Or(s.Max, maxStrangers)
	if int(s.open.Add(1)) > most {
		s.open.Add(-1)
		return &refusal{
			reason: reasonStrangers, err: fmt.Errorf("%d connections without certificate are open", most),
			remedy: "agents that enrol try again by themselves; else look who connects",
		}
	}
	v := &visit{strangers: s, over: time.AfterFunc(cmp.Or(s.Within, strangersWithin), func() { _ = accepted.Conn.Close() })}
	accepted.visit.Store(v)
	return nil
}

// Stranger tells whether the client came without a certificate, to enrol.
func (c *Conn) Stranger() bool { return c.visit.Load() != nil }

// strangersClient is Client of somebody without certificate.
func (e *Endpoint) strangersClient(host, address string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		Time:       e.Now,
		ServerName: host,
		RootCAs:    e.Roots,
		NextProtos: []string{"h2", protocolEnrol},
		VerifyConnection: func(state tls.ConnectionState) error {
			return checkServer(state.PeerCertificates[0], address)
		},
	}
}

// ReadRoots reads a file of CA certificates, as a stranger's Endpoint needs it.
func ReadRoots(path string) (*x509.CertPool, error) {
	bundle, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w; name a copy of the group's ca.crt", err)
	}
	cas, err := parseBundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("CA certificates %s: %w; name a copy of the group's ca.crt", path, err)
	}
	return poolOf(cas), nil
}

func poolOf(cas []*x509.Certificate) *x509.CertPool {
	roots := x509.NewCertPool()
	for _, ca := range cas {
		roots.AddCert(ca)
	}
	return roots
}
