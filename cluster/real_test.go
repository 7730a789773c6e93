// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cluster/transport"
)

// realGroup is a group whose members have folders and loopback ports of their own, with TLS between them.
type realGroup struct {
	*group
	dir       string
	addresses map[string]string
	pool      *x509.CertPool
	pair      tls.Certificate
	folders   map[string]*disk.Folder
}

func newRealGroup(t testing.TB, names ...string) *realGroup {
	t.Helper()
	r := &realGroup{
		group: newGroup(t, names...), dir: t.TempDir(), addresses: map[string]string{}, folders: map[string]*disk.Folder{},
	}
	r.tuning = Tuning{SnapshotInterval: time.Hour, Stabilization: 200 * time.Millisecond}
	if err := r.setCertificate(r.certificate(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r.addresses[name] = l.Addr().String()
		_ = l.Close() // only to find a free port; a member listens there again and again
	}
	r.change = r.equip
	return r
}

// equip gives a member its folder and its port.
func (r *realGroup) equip(m *member, o *Options) {
	folder, err := disk.Open(filepath.Join(r.dir, m.name), m.name)
	if err != nil {
		r.t.Fatalf("open folder of %s: %v", m.name, err)
	}
	var listener net.Listener
	eventually(r.t, "the port is free again", func() bool {
		listener, err = net.Listen("tcp", r.addresses[m.name])
		return err == nil
	})
	tr, err := transport.Listen(transport.Options{
		Listener: listener, Server: r.serverConfig(), Dial: r.dial, Log: r.log,
	})
	if err != nil {
		r.t.Fatalf("listen: %v", err)
	}
	r.folders[m.name] = folder
	o.Stores, o.Path, o.Transport, o.Instance = folder.Stores(), folder.Path(), tr, folder.Identity().Instance
	for i := range o.Bootstrap.Members {
		o.Bootstrap.Members[i].Address = r.addresses[o.Bootstrap.Members[i].Name]
	}
}

func (r *realGroup) stop(name string) {
	r.members[name].stop()
	if f := r.folders[name]; f != nil {
		if err := f.Close(); err != nil {
			r.t.Fatalf("close folder: %v", err)
		}
		delete(r.folders, name)
	}
}

func (r *realGroup) stopAll() {
	for _, name := range r.names() {
		r.stop(name)
	}
}

// wipe loses a member's folder.
func (r *realGroup) wipe(name string) {
	if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatalf("wipe: %v", err)
	}
}

// certificate makes a certificate that trusts itself.
func (r *realGroup) certificate(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "member"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err = x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err = x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func (r *realGroup) setCertificate(certificate, key []byte) error {
	private, err := x509.ParseECPrivateKey(key)
	if err != nil {
		return err
	}
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return err
	}
	r.pool = x509.NewCertPool()
	r.pool.AddCert(parsed)
	r.pair = tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: private}
	return nil
}

func (r *realGroup) serverConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.pair}, ClientCAs: r.pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func (r *realGroup) dial(ctx context.Context, address string) (net.Conn, error) {
	d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.pair}, RootCAs: r.pool}}
	return d.DialContext(ctx, "tcp", address)
}

func TestRealGroupAgreesAndComesBackFromDisk(t *testing.T) {
	r := newRealGroup(t, "a", "b", "c")
	r.startAll()
	defer r.stopAll()
	for i := range 20 {
		mustPropose(t, r.leader(), put(i))
	}
	r.settle()
	r.stopAll()
	r.startAll()
	r.settle()
	if !has(r.leader().state, 19) {
		t.Fatal("an acknowledged command is lost")
	}
}

// The same address, an empty folder: the case that a name on the messages is for.
func TestRealMemberThatLostItsFolderIsReplacedAtTheSameAddress(t *testing.T) {
	r := newRealGroup(t, "a", "b", "c")
	r.startAll()
	defer r.stopAll()
	mustPropose(t, r.leader(), put(1))
	victim := r.followers()[0].name
	old := r.folders[victim].Identity().Instance
	r.stop(victim)
	r.wipe(victim)
	r.start(victim)
	now := r.folders[victim].Identity().Instance
	eventually(t, "the new server votes and the old one is gone", func() bool {
		voters := r.voters()
		return len(voters) == 3 && slices.Contains(voters, ServerID(victim, now)) && !slices.Contains(voters, ServerID(victim, old))
	})
	r.settle()
}
