// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/framelimit"
	"fairlead.io/fairlead/internal/smallfile"
)

// ServerOptions is where a driver is served, and to whom. Only Listen is required. Whoever may call a driver decides where
// its load balancer sends requests: ask callers for a token, or a certificate, unless they are all of this machine.
type ServerOptions struct {
	// Listen is HOST:PORT.
	Listen string
	// Cert and Key name files, in PEM, to serve HTTPS with; both or none. They are read for each connection, so that what
	// renews them need tell nobody.
	Cert, Key string
	// ClientCA names a file with the certificates of those who certify callers: others are turned away. It needs Cert.
	ClientCA string
	HandlerOptions
}

// limits of a driver's port. Members have a few connections each.
func limits() connlimit.Limits {
	return connlimit.Limits{Strangers: connlimit.Room{Total: 256, PerKey: 64}}
}

// whoCalls is who a connection is of, and what that may ask for (see framelimit.Budget): ten thousand calls a second, about. A leader that binds
// thousands of pods makes some three thousand.
func whoCalls(_ tls.ConnectionState, remote net.Addr) (string, framelimit.Budget) {
	return connlimit.Source(remote), framelimit.Budget{Rate: 200_000, AtOnce: 400_000}
}

// farewell is how long calls that are under way may take once a server shall end.
const farewell = 10 * time.Second

// Server is a driver's port, which is open from Listen on.
type Server struct {
	o        ServerOptions
	listener net.Listener
}

// Listen opens a driver's port, so that whoever starts it knows that it can be served. Errors: files cannot be used, or
// the address cannot.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	secured, err := o.secured()
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("serve at %s: %w; name an address of this machine and a free port", o.Listen, err)
	}
	listener = connlimit.Limit(listener, connlimit.Options{Port: "driver", Limits: limits()})
	if secured != nil {
		listener = tls.NewListener(listener, secured)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{o: o, listener: listener}, nil
}

// Addr is where the port is.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes the port of a server that does not serve.
func (s *Server) Close() error { return s.listener.Close() }

// Serve serves d until ctx ends and the calls under way have been answered, which they get ten seconds for.
func (s *Server) Serve(ctx context.Context, d Driver) error {
	server := &http.Server{
		Handler:           framelimit.Requests(NewHandler(d, s.o.HandlerOptions), framelimit.Options{Port: "driver", Who: whoCalls}),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: webhook.MaxTimeout, WriteTimeout: 2 * webhook.MaxTimeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve at %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop serving at %s: %w; calls were under way", s.Addr(), err)
	}
	return nil
}

// ReadToken reads a bearer token for HandlerOptions from a file; space around it does not count. Errors: the file cannot be
// read, or there is none in it.
func ReadToken(file string) (string, error) {
	text, err := smallfile.Read(file, smallfile.Most)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("token %s: it is empty; everybody could call", file)
	}
	return token, nil
}

// secured is how to serve HTTPS, nil if there is no certificate.
func (o ServerOptions) secured() (*tls.Config, error) {
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return nil, errors.New("a certificate and its key: there is only one of them")
	case o.Cert == "" && o.ClientCA != "":
		return nil, errors.New("callers show certificates in TLS only: there has to be one to serve with, and its key")
	case o.Cert == "":
		return nil, nil
	}
	if _, err := o.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.load() }}, nil
}

// load reads what proves who is who.
func (o ServerOptions) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", o.Cert, o.Key, err)
	}
	out := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if o.ClientCA == "" {
		return out, nil
	}
	text, err := smallfile.Read(o.ClientCA, smallfile.Most)
	if err != nil {
		return nil, fmt.Errorf("CA of callers: %w", err)
	}
	out.ClientAuth, out.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !out.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("CA of callers %s: there is no certificate in it", o.ClientCA)
	}
	return out, nil
}
