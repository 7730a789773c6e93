// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// world is a CA and what it signed: one certificate for members, good for 127.0.0.1.
type world struct {
	pool   *x509.CertPool
	member tls.Certificate
}

func newWorld(t *testing.T) world {
	t.Helper()
	caKey, ca := certificate(t, nil, nil, true)
	parent, err := x509.ParseCertificate(ca)
	if err != nil {
		t.Fatal(err)
	}
	key, der := certificate(t, parent, caKey, false)
	pool := x509.NewCertPool()
	pool.AddCert(parent)
	return world{pool: pool, member: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
}

func certificate(t *testing.T, parent *x509.Certificate, signer *ecdsa.PrivateKey, ca bool) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: ca, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func (w world) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{w.member}, ClientCAs: w.pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func (w world) dial(ctx context.Context, address string) (net.Conn, error) {
	d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{w.member}, RootCAs: w.pool}}
	return d.DialContext(ctx, "tcp", address)
}

func listen(t *testing.T, w world, refused func(net.Addr, error)) *Transport {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Listen(Options{Listener: listener, Server: w.server(), Dial: w.dial, Refused: refused, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

func heartbeat(from, to *Transport) error {
	request := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{Addr: []byte(from.LocalAddr())}, Term: 7}
	var response raft.AppendEntriesResponse
	if err := from.AppendEntries("x", to.LocalAddr(), request, &response); err != nil {
		return err
	}
	if response.Term != 7 {
		return errors.New("the answer is not the one that was given")
	}
	return nil
}

// answer plays the library at the other end.
func answer(tr *Transport) {
	tr.SetHeartbeatHandler(func(rpc raft.RPC) { rpc.Respond(&raft.AppendEntriesResponse{Term: 7, Success: true}, nil) })
}

func TestMembersTalkOverMutualTLS(t *testing.T) {
	w := newWorld(t)
	a, b := listen(t, w, nil), listen(t, w, nil)
	answer(b)
	for range 3 {
		if err := heartbeat(a, b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientWithoutTrustedCertificateIsRefusedAndTold(t *testing.T) {
	w, stranger := newWorld(t), newWorld(t)
	refused := make(chan error, 8)
	b := listen(t, w, func(_ net.Addr, err error) { refused <- err })
	for name, certificates := range map[string][]tls.Certificate{"none": nil, "other-ca": {stranger.member}} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", string(b.LocalAddr()), &tls.Config{RootCAs: w.pool, Certificates: certificates})
			if err == nil { // with TLS 1.3 the client learns of the refusal when it reads
				_, err = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}
			if err == nil || errors.Is(err, io.EOF) {
				t.Fatalf("want an alert, got %v", err)
			}
			select {
			case err := <-refused:
				if err == nil {
					t.Fatal("refused without a reason")
				}
			case <-time.After(10 * time.Second):
				t.Fatal("nobody was told")
			}
		})
	}
}

func TestSilentClientsHoldUpNobody(t *testing.T) {
	w := newWorld(t)
	a, b := listen(t, w, nil), listen(t, w, nil)
	answer(b)
	for range maxConns - 8 {
		silent, err := net.Dial("tcp", string(b.LocalAddr()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }()
	}
	if err := heartbeat(a, b); err != nil {
		t.Fatal(err)
	}
}

func TestConnectionsAreBoundedAndPlacesComeBack(t *testing.T) {
	w := newWorld(t)
	a, b := listen(t, w, nil), listen(t, w, nil)
	answer(b)
	for range maxConns + 8 { // more than there are places: the rest waits in the kernel's queue
		silent, err := net.Dial("tcp", string(b.LocalAddr()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }()
	}
	if got := len(b.layer.accepted()); got > maxConns {
		t.Fatalf("%d connections are open, at most %d may be", got, maxConns)
	}
	deadline := time.Now().Add(20 * time.Second)
	for heartbeat(a, b) != nil { // the silent ones lose their places when their time is up
		if time.Now().After(deadline) {
			t.Fatal("no place came back")
		}
	}
}

func TestListenRefusesServerConfigWithoutClientCertificates(t *testing.T) {
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	config := w.server()
	config.ClientAuth = tls.NoClientCert
	if _, err := Listen(Options{Listener: listener, Server: config, Dial: w.dial, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Fatal("a port that anybody may use was opened")
	}
}

func TestCloseEndsEveryConnection(t *testing.T) {
	w := newWorld(t)
	a, b := listen(t, w, nil), listen(t, w, nil)
	answer(b)
	if err := heartbeat(a, b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(b.layer.accepted()); n != 0 {
		t.Fatalf("%d connections survived", n)
	}
	if err := heartbeat(a, b); err == nil {
		t.Fatal("a closed transport answered")
	}
}
