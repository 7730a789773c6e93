// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"fairlead.io/fairlead/internal/smallfile"
)

// Names of the files in a CA's folder.
const (
	CAFile    = "ca.crt" // the bundle: the CA whose key is here, and others that are trusted beside it
	CAKeyFile = "ca.key"
)

const (
	defaultCATTL = 10 * 365 * 24 * time.Hour
	// backdate lets a certificate be used at once on machines whose clocks are a little behind.
	backdate = 5 * time.Minute
)

// ErrExists is part of the error of an Init that would have overwritten a CA.
var ErrExists = errors.New("a CA is there already")

// CAOptions say what a new CA is like. The zero value is fine.
type CAOptions struct {
	Name string           // goes into every identity as its domain; default "fairlead"
	TTL  time.Duration    // default ten years
	Now  func() time.Time // default time.Now
}

// Init makes a CA in dir: ca.key, readable by its owner only, and ca.crt. The folder is made if missing.
//
// It never overwrites: if either file is there it changes nothing and fails with ErrExists. To replace one CA by
// another, see Rotate.
func Init(dir string, opts CAOptions) error {
	if opts.Name == "" {
		opts.Name = "fairlead"
	}
	if err := checkName("CA name", opts.Name); err != nil {
		return err
	}
	if opts.TTL < 0 {
		return fmt.Errorf("make CA in %s: negative lifetime %s", dir, opts.TTL)
	}
	if opts.TTL == 0 {
		opts.TTL = defaultCATTL
	}
	certPath, keyPath := filepath.Join(dir, CAFile), filepath.Join(dir, CAKeyFile)
	for _, path := range []string{keyPath, certPath} {
		if err := refuseExisting(path); err != nil {
			return err
		}
	}
	cert, key, err := newCA(opts)
	if err != nil {
		return fmt.Errorf("make CA in %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make CA: %w", err)
	}
	// The key first: a certificate without key would look like a finished CA that lost it.
	if err := writeNew(keyPath, key, 0o600); err != nil {
		return err
	}
	return writeNew(certPath, cert, 0o644)
}

func refuseExisting(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("make CA: %s: %w; it is never overwritten: use another folder, or move it away if nothing "+
			"trusts it any more", path, ErrExists)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("make CA: %w", err)
	}
}

func newCA(opts CAOptions) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	now := clock(opts.Now)()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"fairlead"}, CommonName: "CA " + opts.Name},
		URIs:                  []*url.URL{{Scheme: uriScheme, Host: opts.Name}},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(opts.TTL),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLen:            1, // it signs leaves and signers, which sign leaves
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return encodeCert(der), keyPEM, err
}

// authority is a CA with its key, or a signer with its key.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	bundle []byte // PEM of every CA in ca.crt
	online bool   // it is a signer, of which others are shown the certificate
}

func openCA(dir string) (authority, error) {
	return openAuthority(filepath.Join(dir, CAFile), filepath.Join(dir, CAKeyFile))
}

func openAuthority(certPath, keyPath string) (authority, error) {
	keyPEM, err := smallfile.Read(keyPath, smallfile.Most)
	if err != nil {
		return authority{}, fmt.Errorf("open CA: %w; make one with `fairlead pki init`, or name its folder", err)
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return authority{}, fmt.Errorf("open CA: %s: no PEM in it; restore it from a copy", keyPath)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return authority{}, fmt.Errorf("open CA: %s: %w; restore it from a copy", keyPath, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return authority{}, fmt.Errorf("open CA: %s: a %T, not an ECDSA key", keyPath, parsed)
	}
	bundle, err := smallfile.Read(certPath, smallfile.Most)
	if err != nil {
		return authority{}, fmt.Errorf("open CA: %w; restore it from a copy", err)
	}
	certs, err := parseBundle(bundle)
	if err != nil {
		return authority{}, fmt.Errorf("open CA: %s: %w", certPath, err)
	}
	for _, cert := range certs {
		if key.PublicKey.Equal(cert.PublicKey) {
			return authority{cert: cert, key: key, bundle: bundle}, nil
		}
	}
	signer, err := openSigner(keyPath, key, bundle, certs)
	if errors.Is(err, fs.ErrNotExist) {
		return authority{}, fmt.Errorf("open CA: %s: none of its %d certificates belongs to %s; "+
			"put the CA's own certificate back into it, or that of a signer into %s", certPath, len(certs), keyPath, besideKey(keyPath))
	}
	if err != nil {
		return authority{}, fmt.Errorf("open signer: %w", err)
	}
	return signer, nil
}

// domain is the name that Init wrote into the CA.
func (a authority) domain() (string, error) {
	for _, uri := range a.cert.URIs {
		if uri.Scheme == uriScheme {
			return uri.Host, nil
		}
	}
	return "", fmt.Errorf("CA %q: not made by `fairlead pki init`: it has no %s:// name", a.cert.Subject.CommonName, uriScheme)
}

// parseBundle reads PEM certificates of CAs; there must be one at least, and nothing else.
func parseBundle(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = rest
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("a %s among the CA certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if !cert.IsCA {
			return nil, fmt.Errorf("certificate %q is not a CA", cert.Subject.CommonName)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("no PEM certificate in it")
	}
	return certs, nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
