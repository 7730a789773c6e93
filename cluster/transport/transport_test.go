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
	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/testkit"
)

func listen(t *testing.T, cert transporttest.Certificate, refused func(net.Addr, error)) *Transport {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	prove, err := TLS(cert.Server(), cert.Name)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Listen(Options{Listener: listener, Prove: prove, Dial: cert.Dial, Refused: refused, Log: slog.New(slog.DiscardHandler)})
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

// crowd keeps connections of strangers to a transport that are ended by nobody but it.
type crowd struct {
	t    *testing.T
	from string
	to   *Transport
	say  string
}

func (c crowd) come(n int) {
	c.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}
	for range n {
		conn, err := d.Dial("tcp", string(c.to.LocalAddr()))
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, c.say); err != nil {
			c.t.Fatal(err)
		}
	}
}

// However many strangers come and stay, from a member's own address or from another one, whether they say nothing or half
// of something: members get through at once, also by new connections.
func TestStrangersTakeNoPlacesOfMembers(t *testing.T) {
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
	answer(b)
	for i := range 6 {
		for _, c := range []crowd{{t, "127.0.0.1", b, ""}, {t, "127.0.0.1", b, "\x16\x03"}, {t, "127.0.0.66", b, ""}} {
			c.come(limits().Strangers.PerKey)
		}
		if err := heartbeat(a, b); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		a.CloseStreams() // as after a broken connection
	}
	open := b.layer.listener.Open()
	if open[connlimit.Silent] > 2*limits().Strangers.Total || open[connlimit.Unproven] > 2*limits().Strangers.Total {
		t.Errorf("open are %v", open)
	}
}

// Connections of a member have their end by the number of them, also if nobody closes the former ones.
func TestConnectionsOfAMemberAreBounded(t *testing.T) {
	cert := transporttest.New(t)
	b := listen(t, cert, nil)
	dial := func() {
		conn, err := cert.Dial(t.Context(), string(b.LocalAddr()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	for range limits().Known.PerKey + 8 {
		dial()
	}
	testkit.Until(t, "all places but no more are taken", func() bool {
		open := b.layer.listener.Open()
		if open[connlimit.Known] < limits().Known.PerKey {
			dial() // on a busy machine a handshake takes longer than it may
		}
		return open[connlimit.Known] == limits().Known.PerKey && open[connlimit.Silent]+open[connlimit.Unproven] == 0
	})
}

func TestServerConfigWithoutClientCertificatesProvesNothing(t *testing.T) {
	cert := transporttest.New(t)
	config := cert.Server()
	config.ClientAuth = tls.NoClientCert
	if _, err := TLS(config, cert.Name); err == nil {
		t.Fatal("a port that anybody may use would be opened")
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
	if open := b.layer.listener.Open(); open != [len(open)]int{} {
		t.Fatalf("connections survived: %v", open)
	}
	if err := heartbeat(a, b); err == nil {
		t.Fatal("a closed transport answered")
	}
}

// broken is a snapshot whose sender is gone in the middle: nothing more comes, and nobody says so.
type broken struct {
	begun bool
	gone  chan struct{}
}

func (b *broken) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		return len(p), nil
	}
	<-b.gone
	return 0, io.ErrUnexpectedEOF
}

// The library reads snapshots where it gives votes.
func TestASnapshotWhoseSenderIsGoneIsGivenUp(t *testing.T) {
	t.Parallel() // it waits for time to pass
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
	gone, sent := make(chan struct{}), make(chan error, 1)
	go func() {
		args := &raft.InstallSnapshotRequest{RPCHeader: raft.RPCHeader{Addr: []byte(a.LocalAddr())}, Term: 7, Size: 100 << 20}
		sent <- a.InstallSnapshot("x", b.LocalAddr(), args, new(raft.InstallSnapshotResponse), &broken{gone: gone})
	}()
	rpc := <-b.Consumer()
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, rpc.Reader)
		rpc.Respond(&raft.InstallSnapshotResponse{}, err)
		read <- err
	}()
	var timeout net.Error
	testkit.Until(t, "the receiver gives it up", func() bool {
		select {
		case err := <-read:
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Fatalf("want a timeout, got %v", err)
			}
			return true
		default:
			return false
		}
	})
	if within := limits().MessageWithin; within > 3*time.Second {
		t.Errorf("a member that gets a snapshot votes for nobody for %s", within) // members without a leader are demoted after 3 s
	}
	close(gone)
	<-sent
}
