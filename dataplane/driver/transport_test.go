// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/freeport"
)

// over makes a Client of a driver at url, over a Transport of its own.
func over(t *testing.T, url string, o driver.TransportOptions, timeout time.Duration) *driver.Client {
	t.Helper()
	return overBy(t, watch(), url, o, timeout)
}

// overBy makes one with a clock of its own.
func overBy(t *testing.T, now func() time.Duration, url string, o driver.TransportOptions, timeout time.Duration) *driver.Client {
	t.Helper()
	transport, err := driver.NewTransport(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	c, err := driver.New(driver.Options{
		Name: "shop/d", URL: url, HTTP: transport, Now: now, Random: rand.NewPCG(1, 2), Log: slog.New(slog.DiscardHandler),
		Timeouts: map[webhook.Name]time.Duration{webhook.EnsureBackend: timeout},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serving is a server, and what it counts.
func serving(t *testing.T, h http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	connections := new(atomic.Int64)
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	t.Cleanup(s.Close)
	return s, connections
}

func succeed(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, everyAnswer)
}

// lbcf §3.1, §11 #45: connections are kept between calls, and given up now and then, so that calls spread over a
// driver's replicas; what arrives is what plain HTTP/1.1 clients send.
func TestConnectionsAreKeptForAWhile(t *testing.T) {
	var mu sync.Mutex
	var first http.Header
	var length int64
	s, connections := serving(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first, length = r.Header.Clone(), r.ContentLength
		}
		if r.Method != http.MethodPost || r.Proto != "HTTP/1.1" || len(r.TransferEncoding) > 0 {
			t.Error(r.Method, r.Proto, r.TransferEncoding)
		}
		succeed(w, r)
	})
	s.Start()
	c := over(t, s.URL, driver.TransportOptions{}, time.Minute)
	for range 250 {
		if _, err := ensure(t.Context(), c, driver.Call{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n < 2 || n > 5 {
		t.Errorf("250 calls took %d connections", n)
	}
	if length <= 0 || first.Get("Accept-Encoding") != "gzip" || first.Get("User-Agent") != "Go-http-client/1.1" || len(first) != 4 {
		t.Error(length, first)
	}
}

// Nobody listens: certain, and said so.
func TestARefusedConnectionIsCertain(t *testing.T) {
	l, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	_ = l.Close()
	_, err = ensure(t.Context(), over(t, url, driver.TransportOptions{}, time.Minute), driver.Call{})
	if cause(err) != driver.CauseConnect || driver.ResultOf("", err) != fsm.ResultFailed || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

// A kept connection that its server has closed is not written to: the request goes over a new one, or surely not at all.
func TestAConnectionThatWasClosedMeanwhileIsReplaced(t *testing.T) {
	s, connections := serving(t, succeed)
	s.Start()
	noticed := make(chan struct{}, 1)
	c := over(t, s.URL, driver.TransportOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return telling{c, noticed}, err
	}}, time.Minute)
	for range 3 {
		if _, err := ensure(t.Context(), c, driver.Call{}); err != nil {
			t.Fatal(err)
		}
		s.CloseClientConnections()
		<-noticed
	}
	if connections.Load() != 3 {
		t.Error(connections.Load())
	}
	s.Close()
	if _, err := ensure(t.Context(), c, driver.Call{}); cause(err) != driver.CauseConnect || driver.ResultOf("", err) != fsm.ResultFailed {
		t.Error(err)
	}
}

// telling is a connection that tells when it is closed from this side.
type telling struct {
	net.Conn
	closed chan<- struct{}
}

func (c telling) Close() error {
	defer func() { c.closed <- struct{}{} }()
	return c.Conn.Close()
}

// A driver that has read the request and goes away, or answers wrongly, may have done what it was asked for.
func TestWhatWasWrittenMayHaveTakenEffect(t *testing.T) {
	for name, hear := range map[string]func(net.Conn){
		"closes":      func(net.Conn) {},
		"cut-answer":  func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}") },
		"no-http":     func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n") },
		"long-header": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			url := listen(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 1))
				hear(c)
				_ = c.Close()
			})
			_, err := ensure(t.Context(), over(t, url, driver.TransportOptions{}, time.Minute), driver.Call{})
			if cause(err) != driver.CauseBroken || driver.ResultOf("", err) != fsm.ResultUnknown {
				t.Error(err)
			}
		})
	}
}

// listen serves raw connections.
func listen(t *testing.T, hear func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go hear(c)
		}
	}()
	return "http://" + l.Addr().String()
}

// design §4: no clock can stop bytes that are on the way, but those that have not left yet are never sent: a driver that
// reads on after the call was given up finds its connection reset, and not the rest of the request.
func TestWhatWaitsToBeSentIsThrownAwayWithTheCall(t *testing.T) {
	begun, givenUp, resets := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	url := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		close(begun)
		<-givenUp
		_, err := io.Copy(io.Discard, c)
		resets <- err
	})
	c := over(t, url, driver.TransportOptions{}, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	large := webhook.Map{"a": strings.Repeat("x", 32<<20)} // more than sockets hold
	_, err := c.EnsureBackend(ctx, driver.Call{}, webhook.BackendRequest{Parameters: large})
	if cause(err) != driver.CauseGone || driver.ResultOf("", err) != fsm.ResultUnknown {
		t.Error(err)
	}
	close(givenUp)
	if err := <-resets; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the driver read to the end: %v", err)
	}
}

// design §4: the deadline is looked at just before bytes are written; connecting counts.
func TestAConnectionThatCameTooLateIsNotWrittenTo(t *testing.T) {
	var mu sync.Mutex
	now := time.Hour
	read := make(chan int, 1)
	transport, err := driver.NewTransport(driver.TransportOptions{Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			n, _ := theirs.Read(make([]byte, 1))
			read <- n
		}()
		mu.Lock()
		defer mu.Unlock()
		now += 20 * time.Second // a machine that slept, say
		return ours, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.New(driver.Options{
		Name: "shop/d", URL: "http://driver.example", HTTP: transport, Random: rand.NewPCG(1, 2), Log: slog.New(slog.DiscardHandler),
		Now: func() time.Duration { mu.Lock(); defer mu.Unlock(); return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ensure(t.Context(), c, driver.Call{})
	if cause(err) != driver.CauseTimeout || driver.ResultOf("", err) != fsm.ResultFailed {
		t.Error(err)
	}
	if n := <-read; n != 0 {
		t.Errorf("%d bytes were written", n)
	}
}

// A machine that does not answer holds nothing longer than the call takes, and is certain.
func TestConnectingEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ended := make(chan time.Duration, 1)
		c := over(t, "http://driver.example", driver.TransportOptions{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			ended <- time.Since(began)
			return nil, ctx.Err()
		}}, 3*time.Second)
		_, err := ensure(t.Context(), c, driver.Call{})
		if cause(err) != driver.CauseTimeout || driver.ResultOf("", err) != fsm.ResultFailed {
			t.Error(err)
		}
		if took := <-ended; took != 3*time.Second {
			t.Error(took)
		}
	})
}

// lbcf §3.1: answers are unpacked within the same bounds.
func TestPackedAnswersAreBoundedToo(t *testing.T) {
	size := 10
	s, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, everyAnswer+strings.Repeat(" ", size))
		_ = z.Close()
	})
	s.Start()
	c := over(t, s.URL, driver.TransportOptions{}, time.Minute)
	if _, err := ensure(t.Context(), c, driver.Call{}); err != nil {
		t.Error(err)
	}
	size = 10 << 20
	if _, err := ensure(t.Context(), c, driver.Call{}); cause(err) != driver.CauseTooLong {
		t.Error(err)
	}
}

// lbcf §11 #53: a private CA, and a certificate of ours that the driver asks for. A server that is not trusted has seen
// nothing of the request.
func TestDriversAndMembersProveWhoTheyAre(t *testing.T) {
	cert, key := selfSigned(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(cert)
	s, _ := serving(t, succeed)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	s.EnableHTTP2 = true
	s.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})

	c := over(t, s.URL, driver.TransportOptions{CA: ca, Cert: cert, Key: key}, time.Minute)
	for range 3 {
		if _, err := ensure(t.Context(), c, driver.Call{}); err != nil {
			t.Error(err)
		}
	}
	_, err := ensure(t.Context(), over(t, s.URL, driver.TransportOptions{Cert: cert, Key: key}, time.Minute), driver.Call{})
	if cause(err) != driver.CauseConnect || driver.ResultOf("", err) != fsm.ResultFailed || !strings.Contains(err.Error(), "unknown authority") {
		t.Error(err)
	}
	if _, err = ensure(t.Context(), over(t, s.URL, driver.TransportOptions{CA: ca}, time.Minute), driver.Call{}); err == nil {
		t.Error("the driver took a caller without a certificate")
	}
	for name, o := range map[string]driver.TransportOptions{"ca": {CA: []byte("nonsense")}, "key": {Cert: cert}, "cert": {Key: key}} {
		if _, err := driver.NewTransport(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// selfSigned makes a certificate and its key, in PEM.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "member"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// A dead driver costs others nothing: neither time nor connections, and its calls end in time.
func TestADeadDriverCostsOthersNothing(t *testing.T) {
	s, _ := serving(t, succeed)
	s.Start()
	alive := over(t, s.URL, driver.TransportOptions{}, time.Minute)
	var skipped atomic.Int64
	clock := watch()
	now := func() time.Duration { return clock() + time.Duration(skipped.Load()) }
	dead := overBy(t, now, listen(t, func(net.Conn) {}), driver.TransportOptions{}, 100*time.Millisecond)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { _, _ = ensure(t.Context(), dead, driver.Call{}) })
		all.Go(func() {
			if _, err := ensure(t.Context(), alive, driver.Call{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	skipped.Add(int64(time.Minute))
	for dead.Silence() == nil { // until enough of its calls had time to be sent
		_, _ = ensure(t.Context(), dead, driver.Call{})
	}
	if alive.Silence() != nil {
		t.Error(alive.Silence())
	}
}
