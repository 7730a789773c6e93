// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/transport/transporttest"
	"fairlead.io/fairlead/internal/testkit"
)

func listen(t *testing.T, cert transporttest.Certificate, refused func(net.Addr, error)) *Transport {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Listen(Options{Listener: listener, Server: cert.Server(), Dial: cert.Dial, Refused: refused, Log: slog.New(slog.DiscardHandler)})
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
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
	answer(b)
	for range 3 {
		if err := heartbeat(a, b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientWithoutTrustedCertificateIsRefusedAndTold(t *testing.T) {
	cert, stranger := transporttest.New(t), transporttest.New(t)
	refused := make(chan error, 8)
	b := listen(t, cert, func(_ net.Addr, err error) { refused <- err })
	for name, certificates := range map[string][]tls.Certificate{"none": nil, "other-ca": {stranger.Pair}} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", string(b.LocalAddr()), &tls.Config{RootCAs: cert.Pool, Certificates: certificates})
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
			case <-time.After(testkit.Patience):
				t.Fatal("nobody was told")
			}
		})
	}
}

func TestSilentClientsHoldUpNobody(t *testing.T) {
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
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
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
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
	testkit.Eventually(t, "the silent ones lose their places, for their time is up", func() error { return heartbeat(a, b) })
}

func TestListenRefusesServerConfigWithoutClientCertificates(t *testing.T) {
	cert := transporttest.New(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	config := cert.Server()
	config.ClientAuth = tls.NoClientCert
	if _, err := Listen(Options{Listener: listener, Server: config, Dial: cert.Dial, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Fatal("a port that anybody may use was opened")
	}
}

func TestCloseEndsEveryConnection(t *testing.T) {
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
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
