// SPDX-License-Identifier: Apache-2.0

package framelimit

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// port is a listener to which the test connects.
type port struct {
	accepts chan net.Conn
	closed  chan struct{}
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepts:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error { close(p.closed); return nil }

func (p *port) Addr() net.Addr { return &net.TCPAddr{} }

func (p *port) dial(t *testing.T, protocols ...string) *tls.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	p.accepts <- theirs
	secured := tls.Client(ours, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	if err := secured.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return secured
}

// serving is a server on clocks of the test, which reads at most what the Budget says.
func serving(t *testing.T, o Options, b Budget, pages http.Handler) *port {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: pages, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
	}
	o.Who = func(tls.ConnectionState, net.Addr) (string, Budget) { return "somebody", b }
	if err := Configure(server, o); err != nil {
		t.Fatal(err)
	}
	p := &port{accepts: make(chan net.Conn), closed: make(chan struct{})}
	ended := make(chan struct{})
	go func() { _ = server.ServeTLS(p, "", ""); close(ended) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return p
}

// client writes frames of HTTP/2, and reads what comes.
type client struct {
	*http2.Framer
	conn   *tls.Conn
	stream uint32
}

func (p *port) client(t *testing.T) *client {
	t.Helper()
	secured := p.dial(t, "h2")
	c := &client{Framer: http2.NewFramer(secured, secured), conn: secured, stream: 1}
	c.AllowIllegalWrites = true
	go func() { _, _ = io.Copy(io.Discard, secured) }()
	if _, err := io.WriteString(secured, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c
}

// asks begins a request, on a stream of its own.
func (c *client) asks(path string, end bool, extra ...hpack.HeaderField) error {
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "x"},
	}, extra...) {
		if err := encoder.WriteField(f); err != nil {
			return err
		}
	}
	c.stream += 2
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: end})
}

// floods are all that a client may send without end, and what one of it costs.
func floods() map[string]func(*client) (cost int, err error) {
	held := func(c *client) error { // a stream on which the server waits for more
		if c.stream == 1 {
			return c.asks("/held", false)
		}
		return nil
	}
	return map[string]func(*client) (int, error){
		"settings": func(c *client) (int, error) {
			return 1, c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16384})
		},
		"settings of tables": func(c *client) (int, error) {
			return 1, c.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 4096})
		},
		"settings acknowledged": func(c *client) (int, error) { return 1, c.WriteSettingsAck() },
		"ping":                  func(c *client) (int, error) { return 1, c.WritePing(false, [8]byte{1}) },
		"ping acknowledged":     func(c *client) (int, error) { return 1, c.WritePing(true, [8]byte{1}) },
		"priority": func(c *client) (int, error) {
			return 1, c.WritePriority(1, http2.PriorityParam{Weight: 7})
		},
		"priority update": func(c *client) (int, error) { return 1, c.WriteRawFrame(0x10, 0, 0, []byte("\x00\x00\x00\x01u=1")) },
		"unknown":         func(c *client) (int, error) { return 1, c.WriteRawFrame(0xfa, 0, 0, []byte("x")) },
		"window":          func(c *client) (int, error) { return 1, c.WriteWindowUpdate(0, 1) },
		"data": func(c *client) (int, error) {
			return 1, errors.Join(held(c), c.WriteData(c.stream, false, nil))
		},
		"data of a byte": func(c *client) (int, error) {
			return 1, errors.Join(held(c), c.WriteData(c.stream, false, []byte{0}))
		},
		"requests": func(c *client) (int, error) { return 8, c.asks("/nothing", true) },
		"rapid resets": func(c *client) (int, error) {
			return 9, errors.Join(c.asks("/held", false), c.WriteRSTStream(c.stream, http2.ErrCodeCancel))
		},
		"large headers": func(c *client) (int, error) {
			return 290, c.asks("/nothing", true, hpack.HeaderField{Name: "x", Value: strings.Repeat("~", 15_000), Sensitive: true})
		},
		"large trailers": func(c *client) (int, error) {
			err := c.asks("/held", false)
			var block strings.Builder
			encoder := hpack.NewEncoder(&block)
			err = errors.Join(err, encoder.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("~", 15_000), Sensitive: true}))
			return 290, errors.Join(err, c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: true}))
		},
		"continuation": func(c *client) (int, error) {
			if c.stream == 1 {
				c.stream += 2
				return 8, c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: []byte{0x82}})
			}
			return 1, c.WriteContinuation(c.stream, false, []byte{0x82})
		},
	}
}

// held waits for all that is sent, and for nothing else has an answer.
func held(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/held" {
		_, _ = io.Copy(io.Discard, r.Body)
		return
	}
	http.NotFound(w, r)
}

// Whatever a client sends without end, the server takes no more of it than the Budget has, or ends the connection. All of its clocks are the
// test's: without a bound no time would pass.
func TestFloodsTakeTime(t *testing.T) {
	const seconds = 4
	b := Budget{Rate: 500, AtOnce: 1000}
	for name, flood := range floods() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := serving(t, Options{}, b, http.HandlerFunc(held)).client(t)
				defer c.conn.Close()
				begin, spent := time.Now(), 0
				var err error
				for n := 0; err == nil && spent < b.AtOnce+seconds*b.Rate; spent += n {
					n, err = flood(c)
				}
				took, may := time.Since(begin), float64(b.AtOnce)+400 // and one frame that was read before
				if may += took.Seconds() * float64(b.Rate); float64(spent) > may {
					t.Errorf("it took %d in %v: %v", spent, took, err)
				}
				if err == nil && took > 3*seconds*time.Second {
					t.Errorf("%d took %v", spent, took)
				}
			})
		})
	}
}

// Requests of HTTP/1.1 are bounded as those of HTTP/2 are.
func TestRequestsTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Budget{Rate: 500, AtOnce: 1000}
		c := serving(t, Options{}, b, http.HandlerFunc(held)).dial(t, "http/1.1")
		defer c.Close()
		go func() { _, _ = io.Copy(io.Discard, c) }()
		begin, spent := time.Now(), 0
		for spent < b.AtOnce+4*b.Rate {
			if _, err := io.WriteString(c, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			spent += 8
		}
		if took := time.Since(begin); took < 3*time.Second {
			t.Errorf("%d requests in %v", spent/8, took)
		}
	})
}

// Whoever reads a large answer says all the time that he has room for more, which counts for nothing.
func TestReadersOfLargeAnswersNeedNotWait(t *testing.T) {
	const length = 32 << 20
	var slowed atomic.Int64
	p := serving(t, Options{Slowed: func(string) { slowed.Add(1) }}, Budget{Rate: 5000, AtOnce: 50}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 32<<10)
		for n := 0; n < length; n += len(piece) {
			_, _ = w.Write(piece) // whoever asked counts
		}
	}))
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) {
		return p.dial(t, "h2"), nil // which does the TLS
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); n != length || err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if n := slowed.Load(); n > 0 {
		t.Errorf("it waited %d times", n)
	}
}

// A connection that waits for its turn is closed at once all the same.
func TestWaitingEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Limiter{accounts: accounts{named: map[string]*account{}}}
		a := l.accounts.enter("x", Budget{Rate: 1, AtOnce: 1})
		a.spend(100, time.Now())
		begin, over := time.Now(), make(chan struct{})
		time.AfterFunc(300*time.Millisecond, func() { close(over) })
		if l.wait("x", a, over); time.Since(begin) != 300*time.Millisecond {
			t.Errorf("it waited for %v", time.Since(begin))
		}
		if l.wait("x", a, nil); time.Since(begin) != 300*time.Millisecond+maxPause {
			t.Errorf("it waited for %v", time.Since(begin))
		}
	})
}
