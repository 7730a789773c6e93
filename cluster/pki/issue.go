// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Default lifetimes: machines renew theirs by themselves, people do not.
const (
	MachineTTL = 24 * time.Hour
	PersonTTL  = 90 * 24 * time.Hour
)

// Request says which certificate is wanted.
type Request struct {
	Role  Role
	Name  string
	Hosts []string         // DNS names and IP addresses at which a member is dialled; others have none
	TTL   time.Duration    // default MachineTTL or PersonTTL; cut at the end of the CA's life
	Now   func() time.Time // default time.Now
}

func (r Request) validate() error {
	fail := func(err error) error { return fmt.Errorf("issue certificate %s/%s: %w", r.Role, r.Name, err) }
	if !slices.Contains(Roles(), r.Role) {
		return fail(fmt.Errorf("unknown role %q; it is one of %v", r.Role, Roles()))
	}
	if err := checkName("name", r.Name); err != nil {
		return fail(err)
	}
	if r.TTL < 0 {
		return fail(fmt.Errorf("negative lifetime %s", r.TTL))
	}
	if r.Role == Member && len(r.Hosts) == 0 {
		return fail(errors.New("a member needs the host names or addresses at which it is dialled"))
	}
	if r.Role != Member && len(r.Hosts) > 0 {
		return fail(errors.New("only members are dialled; leave out the hosts"))
	}
	for _, host := range r.Hosts {
		if net.ParseIP(host) != nil {
			continue
		}
		if err := checkName("host", host); err != nil {
			return fail(err)
		}
	}
	return nil
}

func (r Request) ttl() time.Duration {
	switch {
	case r.TTL > 0:
		return r.TTL
	case r.Role == Member || r.Role == Agent || r.Role == Host:
		return MachineTTL
	default:
		return PersonTTL
	}
}

// Issued is a new certificate with its key and the CAs that its holder shall trust, all PEM.
type Issued struct {
	Identity Identity
	Cert     []byte // and behind it that of the signer, if one made it
	Key      []byte // nil where somebody else has it
	CA       []byte
	NotAfter time.Time
}

// Issue makes a key and a certificate signed by the CA in dir. It writes nothing; see Issued.Write.
func Issue(dir string, req Request) (*Issued, error) {
	if err := req.validate(); err != nil {
		return nil, err
	}
	ca, err := openCA(dir)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("issue certificate %s/%s: %w", req.Role, req.Name, err)
	}
	issued, err := ca.issue(req, key.Public())
	if err != nil {
		return nil, err
	}
	if issued.Key, err = encodeKey(key); err != nil {
		return nil, fmt.Errorf("issue certificate %s: %w", issued.Identity, err)
	}
	return issued, nil
}

// issue makes a certificate for whoever has the key to public.
func (a authority) issue(req Request, public crypto.PublicKey) (*Issued, error) {
	domain, err := a.domain()
	if err != nil {
		return nil, err
	}
	id := Identity{Domain: domain, Role: req.Role, Name: req.Name}
	if err := a.mayIssue(req.Role); err != nil {
		return nil, fmt.Errorf("issue certificate %s: %w: %w", id, ErrRequest, err)
	}
	now := clock(req.Now)()
	if !now.Before(a.cert.NotAfter) {
		return nil, fmt.Errorf("issue certificate %s: the CA %q expired on %s; make a new one with `fairlead pki init`, or of a signer with `fairlead pki signer`",
			id, a.cert.Subject.CommonName, a.cert.NotAfter.Format(time.RFC3339))
	}
	issued, err := a.sign(id, req, public, now)
	if err != nil {
		return nil, fmt.Errorf("issue certificate %s: %w", id, err)
	}
	return issued, nil
}

func (a authority) sign(id Identity, req Request, public crypto.PublicKey, now time.Time) (*Issued, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	notAfter := now.Add(req.ttl())
	if notAfter.After(a.cert.NotAfter) {
		notAfter = a.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{organizationPrefix + string(id.Role)}, CommonName: id.Name},
		URIs:         []*url.URL{id.uri()},
		NotBefore:    now.Add(-backdate),
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if id.Role == Member {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range req.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return &Issued{Identity: id, Cert: append(encodeCert(der), a.chain()...), CA: a.bundle, NotAfter: notAfter}, nil
}

// Write puts ca.crt, <name>.crt and <name>.key (readable by its owner only) into dir, which is made if
// missing, and tells where. Existing files are replaced one by one, each at once: a Source that reads in
// between keeps what it has until they fit together. It refuses a folder that holds a CA's key: who reads a
// certificate's folder shall not be able to read that.
func (i *Issued) Write(dir string) (Files, error) {
	files := Files{
		CA:   filepath.Join(dir, CAFile),
		Cert: filepath.Join(dir, i.Identity.Name+".crt"),
		Key:  filepath.Join(dir, i.Identity.Name+".key"),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, fmt.Errorf("write certificate %s: %w", i.Identity, err)
	}
	for _, key := range []string{CAKeyFile, SignerKeyFile} {
		if _, err := os.Lstat(filepath.Join(dir, key)); err == nil || i.Identity.Name+".key" == key {
			return Files{}, fmt.Errorf("write certificate %s: %s is the folder of a CA, or would look like one; "+
				"use another folder or name", i.Identity, dir)
		}
	}
	return files, errors.Join(
		replace(files.Key, i.Key, 0o600),
		replace(files.Cert, i.Cert, 0o644),
		replace(files.CA, i.CA, 0o644),
	)
}
