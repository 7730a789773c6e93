// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// TransportOptions is what a Transport is made of. All fields may be left out.
type TransportOptions struct {
	// CA are the certificates, in PEM, that the driver's is checked against. Default those of the system.
	CA []byte
	// Cert and Key are shown to the driver, in PEM. Default none.
	Cert, Key []byte
	// Connections is how many there may be at once. Default 64, as many as a Client has calls in flight.
	Connections int
	// Check tells why there shall be no connection to an address, after names were resolved. Errors wrap ErrAddress. Default: to
	// all there may be.
	Check func(ctx context.Context, to netip.AddrPort) error
	// Dial makes connections, and does not ask Check. Default TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Of kept connections.
const (
	// idleMost is below the five seconds after which common servers close idle connections: a request that crosses that
	// is lost, and nobody can tell whether it was read.
	idleMost = 4 * time.Second
	// callsPerConnection is after how many calls one takes its connection with it, so that drivers behind a Service
	// share the load again after one of them was replaced (lbcf §3.1).
	callsPerConnection = 100
	// deadAfter is how long what was written may stay without a sign from the driver's machine.
	deadAfter = 20 * time.Second
)

const maxHeader = 64 << 10 // of an answer, bytes

// Transport is the connections to one driver: HTTP/1.1, kept for the next call, without proxies. It is an
// http.RoundTripper as Client wants it.
type Transport struct {
	http  *http.Transport
	calls atomic.Uint64
}

// NewTransport makes a Transport. Errors: certificates or key cannot be read.
func NewTransport(o TransportOptions) (*Transport, error) {
	config, err := o.tls()
	if err != nil {
		return nil, err
	}
	if o.Connections <= 0 {
		o.Connections = DefaultConcurrent
	}
	if o.Dial == nil {
		dialer := &net.Dialer{KeepAlive: deadAfter / 2, ControlContext: o.control}
		o.Dial = dialer.DialContext
	}
	one := new(http.Protocols)
	one.SetHTTP1(true)
	return &Transport{http: &http.Transport{
		DialContext: o.dial, TLSClientConfig: config, Protocols: one,
		MaxConnsPerHost: o.Connections, MaxIdleConns: o.Connections, MaxIdleConnsPerHost: o.Connections,
		IdleConnTimeout: idleMost, MaxResponseHeaderBytes: maxHeader, TLSHandshakeTimeout: deadAfter,
	}}, nil
}

func (o TransportOptions) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("a driver's ca: there is no certificate in it; it has to be in PEM")
		}
	}
	if len(o.Cert) > 0 || len(o.Key) > 0 {
		pair, err := tls.X509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate to show to a driver, and its key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// control is asked about a connection before it is begun, with the address that it is to.
func (o TransportOptions) control(ctx context.Context, _, address string, c syscall.RawConn) error {
	if o.Check != nil {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAddress, err)
		}
		if err := o.Check(ctx, to); err != nil {
			return err
		}
	}
	return giveUpAfter(deadAfter, address, c)
}

// dial makes a connection, within the budget of the call that it is for: http.Transport itself would go on without it.
func (o TransportOptions) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, left(ctx))
	defer cancel()
	c, err := o.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// RoundTrip implements http.RoundTripper. Its errors wrap ErrNotSent where nothing of r was written.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	f := &flight{late: func() bool { return left(ctx) <= 0 }}
	strange := false // a connection that is none of ours tells nothing
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if c, ok := under(info.Conn); ok {
			c.flight.Store(f)
		} else {
			strange = true
		}
	}})
	r = r.WithContext(ctx)
	r.Close = t.calls.Add(1)%callsPerConnection == 0
	response, err := t.http.RoundTrip(r)
	if err == nil {
		f.land()
		return response, nil
	}
	if f.seal() || strange {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
}

// Close ends connections that no call uses. Calls that are under way go on.
func (t *Transport) Close() { t.http.CloseIdleConnections() }
