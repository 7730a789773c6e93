// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/smallfile"
)

// Names of the files in a signer's folder, beside the CA's own ca.crt.
const (
	SignerFile    = "signer.crt"
	SignerKeyFile = "signer.key"
)

// defaultSignerTTL is long enough to be forgotten, hence the gauge and the log line, and short against the CA's.
const defaultSignerTTL = 2 * 365 * 24 * time.Hour

// machines are the roles whose certificates are signed on line: what a signer is trusted with.
func machines() []Role { return []Role{Member, Agent, Host} }

// InitSigner makes a signer in dir: an intermediate of the CA in the folder ca, with which members sign certificates of machines,
// so that the CA's own key stays off line. It writes signer.key, readable by its owner only, signer.crt and the CA's ca.crt; the
// folder is made if missing. Of opts, Name is not used.
//
// It never overwrites, and it refuses the CA's own folder: who has the one shall not have the other. Errors also: the CA is of a
// release before there were signers, and vouches for none.
func InitSigner(ca, dir string, opts CAOptions) (notAfter time.Time, err error) {
	root, err := openCA(ca)
	if err != nil {
		return time.Time{}, err
	}
	if root.cert.MaxPathLenZero {
		return time.Time{}, fmt.Errorf("make signer: the CA %q in %s was made before there were signers, and vouches for none; replace it first: `fairlead pki rotate --dir %s --out next`",
			root.cert.Subject.CommonName, ca, ca)
	}
	if opts.TTL < 0 {
		return time.Time{}, fmt.Errorf("make signer in %s: negative lifetime %s", dir, opts.TTL)
	}
	if opts.TTL == 0 {
		opts.TTL = defaultSignerTTL
	}
	for _, name := range []string{CAKeyFile, SignerKeyFile, SignerFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return time.Time{}, fmt.Errorf("make signer: %s: %w; use another folder", filepath.Join(dir, name), ErrExists)
		}
	}
	cert, key, notAfter, err := root.signer(opts)
	if err != nil {
		return time.Time{}, fmt.Errorf("make signer in %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return time.Time{}, fmt.Errorf("make signer: %w", err)
	}
	return notAfter, errors.Join(
		writeNew(filepath.Join(dir, SignerKeyFile), key, 0o600),
		writeNew(filepath.Join(dir, SignerFile), cert, 0o644),
		replace(filepath.Join(dir, CAFile), root.bundle, 0o644),
	)
}

// signer makes an intermediate and its key, in PEM.
func (a authority) signer(opts CAOptions) (cert, keyPEM []byte, notAfter time.Time, err error) {
	domain, err := a.domain()
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	now := clock(opts.Now)()
	if !now.Before(a.cert.NotAfter) {
		return nil, nil, time.Time{}, errors.New("the CA has expired; make a new one with `fairlead pki init`")
	}
	notAfter = now.Add(opts.TTL)
	if notAfter.After(a.cert.NotAfter) {
		notAfter = a.cert.NotAfter
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"fairlead"}, CommonName: "signer " + domain},
		URIs:                  []*url.URL{{Scheme: uriScheme, Host: domain}},
		NotBefore:             now.Add(-backdate),
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs leaves, never another CA
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	keyPEM, err = encodeKey(key)
	return encodeCert(der), keyPEM, notAfter, err
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// besideKey is where the certificate of a signer is: signer.key has signer.crt.
func besideKey(keyPath string) string { return strings.TrimSuffix(keyPath, ".key") + ".crt" }

// openSigner is an authority whose certificate is not among the CAs, but vouched for by one of them.
func openSigner(keyPath string, key *ecdsa.PrivateKey, bundle []byte, roots []*x509.Certificate) (authority, error) {
	path := besideKey(keyPath)
	data, err := smallfile.Read(path, smallfile.Most)
	if err != nil {
		return authority{}, err
	}
	certs, err := parseBundle(data)
	if err != nil {
		return authority{}, fmt.Errorf("%s: %w", path, err)
	}
	if cert := certs[0]; key.PublicKey.Equal(cert.PublicKey) {
		vouches := func(root *x509.Certificate) bool { return cert.CheckSignatureFrom(root) == nil }
		if !slices.ContainsFunc(roots, vouches) {
			return authority{}, fmt.Errorf("%s: none of the CAs that are trusted belongs to %s, or vouches for it; put the CA's own certificate among them, or make a signer of one: `fairlead pki signer`", path, keyPath)
		}
		return authority{cert: cert, key: key, bundle: bundle, online: true}, nil
	}
	return authority{}, fmt.Errorf("%s: it does not belong to the key beside it", path)
}

// chain is what is shown behind a certificate of this authority, in PEM: nothing where everybody has the CA that signed it.
func (a authority) chain() []byte {
	if !a.online {
		return nil
	}
	return encodeCert(a.cert.Raw)
}

// mayIssue tells why an authority does not sign for a role.
func (a authority) mayIssue(role Role) error {
	if a.online && !slices.Contains(machines(), role) {
		return fmt.Errorf("a signer vouches for machines alone, not for the role %s; issue it in the CA's own folder", role)
	}
	return nil
}

// checkVoucher refuses a certificate of a person that a signer made: its key is where machines are, and whoever takes one of them
// shall not be an operator by it.
func checkVoucher(id Identity, chains [][]*x509.Certificate) error {
	direct := func(chain []*x509.Certificate) bool { return len(chain) <= 2 }
	if slices.Contains(machines(), id.Role) || slices.ContainsFunc(chains, direct) {
		return nil
	}
	return fmt.Errorf("certificate of %s: a signer made it, which vouches for machines alone; issue it in the CA's own folder", id)
}

// intermediatesOf are the certificates behind the first.
func intermediatesOf(chain []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range chain[min(1, len(chain)):] {
		pool.AddCert(cert)
	}
	return pool
}

// parseChain reads the certificates of a PEM file, the holder's first.
func parseChain(data []byte) (chain []*x509.Certificate, err error) {
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			return chain, nil
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		chain, data = append(chain, cert), bytes.TrimSpace(rest)
	}
}

// NotAfter is when what signs ends, and with it everything that it signed. Errors: the CA cannot be read.
func (a *Authority) NotAfter() (time.Time, error) {
	ca, err := openAuthority(a.cert, a.key)
	if err != nil {
		return time.Time{}, err
	}
	return ca.cert.NotAfter, nil
}

// ExpiryGauge shows when what signs ends; zero if it cannot be read.
func (a *Authority) ExpiryGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fairlead_signer_not_after_seconds",
		Help: "When the certificate ends with whose key this member signs others, and with it all of those, seconds since 1970.",
	}, func() float64 {
		end, err := a.NotAfter()
		if err != nil {
			return 0
		}
		return float64(end.Unix())
	})
}
