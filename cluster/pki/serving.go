// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/smallfile"
)

// ServingOptions is what a Serving is made of. Fields without "optional" are required.
type ServingOptions struct {
	// Names, and addresses, at which callers look for this process.
	Names []string
	// Folder is somebody else's to keep: tls.crt, tls.key and, if it has one, ca.crt, as in a Secret of cert-manager.
	// Optional: empty, the group's own CA is used.
	Folder string
	// Files are this process's, whose CAs callers are told to trust, and Source has its certificate. Optional with Folder.
	Files  Files
	Source *Source
	// Authority signs for this process; nil: it has not the CA's key, and its own certificate has to be good at Names.
	Authority *Authority
	Callers   Callers // optional
	Log       *slog.Logger
	Now       func() time.Time // optional, time.Now
}

// Serving is the certificate for callers who belong to no group and only check a server by a CA that they were told of: the
// API server, which asks for admission. It is in force at every handshake, renews itself, and proves nothing to members
// and agents: it has no identity.
type Serving struct {
	of      servingSource
	callers Callers
}

// servingSource is where the certificate comes from.
type servingSource interface {
	certificate() (*tls.Certificate, error)
	bundle() ([]byte, error)
}

// OpenServing makes a Serving. Errors: there is no certificate, or it is not good at a name.
func OpenServing(o ServingOptions) (*Serving, error) {
	o.Now = clock(o.Now)
	s := &Serving{callers: o.Callers}
	if _, err := o.Callers.roots(); err != nil {
		return nil, err
	}
	switch {
	case o.Folder != "":
		s.of = &mounted{files: mountedIn(o.Folder), log: o.Log}
	case o.Authority != nil:
		s.of = &signed{o: o}
	default:
		s.of = lent{o}
	}
	c, err := s.of.certificate()
	if err != nil {
		return nil, err
	}
	for _, name := range o.Names {
		if err := c.Leaf.VerifyHostname(name); err != nil {
			return nil, fmt.Errorf("serve at %s: %w; put it into the certificate (`fairlead pki issue member … --host %s`), "+
				"or give this member the CA's key (tls.caKey)", name, err, name)
		}
	}
	return s, nil
}

// Config is the side of the server. Callers need a certificate only where a CA of theirs was named.
func (s *Serving) Config() *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.of.certificate() },
	}
	s.callers.demand(config)
	return config
}

// Bundle gives the CAs, in PEM, by which callers know the certificate of this process and those of the other members. It
// is empty where that is for somebody else to tell them.
func (s *Serving) Bundle() ([]byte, error) { return s.of.bundle() }

// ExpiryGauge shows when the certificate ends; zero if there is none.
func (s *Serving) ExpiryGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fairlead_admission_certificate_not_after_seconds",
		Help: "When the certificate that the API server is shown ends, seconds since 1970.",
	}, func() float64 {
		c, err := s.of.certificate()
		if err != nil {
			return 0
		}
		return float64(c.Leaf.NotAfter.Unix())
	})
}

// lent is this process's own certificate.
type lent struct{ o ServingOptions }

func (l lent) certificate() (*tls.Certificate, error) {
	return &l.o.Source.Material().Certificate, nil
}

func (l lent) bundle() ([]byte, error) { return smallfile.Read(l.o.Files.CA, smallfile.Most) }

// signed is one that this process signs for itself. It lives in memory: another one costs nothing.
type signed struct {
	o ServingOptions

	mu     sync.Mutex
	held   *tls.Certificate // nil before the first
	signer []byte           // DER of the CA that signed it
	look   time.Time        // when to look at the CA again
}

// lookAgain is how soon another CA counts, and how soon one that cannot be read is asked again.
const lookAgain = time.Minute

func (s *signed) bundle() ([]byte, error) { return smallfile.Read(s.o.Files.CA, smallfile.Most) }

func (s *signed) certificate() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	if s.held != nil && now.Before(s.look) {
		return s.held, nil
	}
	s.look = now.Add(lookAgain)
	err := s.renew(now)
	if err == nil {
		return s.held, nil
	}
	if s.held == nil || !now.Before(s.held.Leaf.NotAfter) {
		return nil, err
	}
	s.o.Log.Error("certificate for admission not renewed", "err", err, "not_after", s.held.Leaf.NotAfter)
	return s.held, nil
}

// renew signs another one if this one is due, or if there is another CA.
func (s *signed) renew(now time.Time) error {
	ca, err := openAuthority(s.o.Authority.cert, s.o.Authority.key)
	if err != nil {
		return err
	}
	if s.held != nil && bytes.Equal(s.signer, ca.cert.Raw) {
		if from, _ := RenewFrom(s.held.Leaf); now.Before(from) {
			return nil
		}
	}
	c, err := ca.serving(s.o.Names, now)
	if err != nil {
		return fmt.Errorf("sign the certificate for admission: %w", err)
	}
	s.held, s.signer = c, ca.cert.Raw
	s.o.Log.Info("certificate for admission signed", "not_after", c.Leaf.NotAfter)
	return nil
}

// serving makes a certificate, and its key, for a server without an identity.
func (a authority) serving(names []string, now time.Time) (*tls.Certificate, error) {
	if !now.Before(a.cert.NotAfter) {
		return nil, errors.New("the CA has expired; make a new one with `fairlead pki init`")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "fairlead admission"},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(MachineTTL),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		if err := checkName("name", name); err != nil {
			return nil, err
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	shown := [][]byte{der}
	if a.online {
		shown = append(shown, a.cert.Raw)
	}
	return &tls.Certificate{Certificate: shown, PrivateKey: key, Leaf: leaf}, nil
}
