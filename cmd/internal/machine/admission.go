// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/netutil"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/member"
)

// Of the port at which the API server asks. Whoever reaches it may connect: callers show no certificate.
const (
	admissionHeaderWithin = 10 * time.Second // the handshake, too
	admissionReadWithin   = 15 * time.Second
	// admissionWriteWithin is longer than the API server waits for an answer.
	admissionWriteWithin = 40 * time.Second
	admissionIdle        = 2 * time.Minute
	admissionHeaderBytes = 16 << 10
	// admissionConnections is how many there may be. An API server has one or two.
	admissionConnections = 128
	// admissionAtATime is how many requests are read and judged at a time, of up to eight MiB each. Further ones wait.
	admissionAtATime = 64
	admissionStop    = 5 * time.Second // for requests under way when the member ends
)

// openAdmission makes what the API server is shown, if a configuration asks for it. The port opens when there is
// something to serve.
func (n *network) openAdmission() error {
	c := n.Config
	if c.Listen.Admission == "" && n.listeners.Admission == nil {
		return nil
	}
	o := pki.ServingOptions{Names: c.Admission.Names, Folder: c.Admission.CertDir, Files: n.files, Source: n.endpoint.Source, Log: n.Log}
	if key := c.TLS.CAKey; key != "" {
		authority, err := pki.OpenAuthority(c.TLS.CA, key)
		if err != nil {
			return err
		}
		o.Authority = authority
	}
	serving, err := pki.OpenServing(o)
	if err != nil {
		return fmt.Errorf("listen.admission: %w", err)
	}
	if err := n.Metrics.Register(serving.ExpiryGauge()); err != nil {
		return fmt.Errorf("register metrics of admission: %w", err)
	}
	n.admission = &member.Admission{Bundle: serving.Bundle, Serve: func(ctx context.Context, pages http.Handler) error {
		listener := n.listeners.Admission
		if listener == nil {
			var err error
			if listener, err = listen("listen.admission", c.Listen.Admission); err != nil {
				return err
			}
		}
		return serveAdmission(ctx, listener, serving, pages, n.Log)
	}}
	return nil
}

// serveAdmission answers until ctx ends, and closes the listener.
func serveAdmission(ctx context.Context, listener net.Listener, serving *pki.Serving, pages http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: atATime(admissionAtATime, pages), TLSConfig: serving.Config(),
		ReadHeaderTimeout: admissionHeaderWithin, ReadTimeout: admissionReadWithin, WriteTimeout: admissionWriteWithin,
		IdleTimeout: admissionIdle, MaxHeaderBytes: admissionHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // port scanners, and an API server that does not trust us yet
	}
	// As that of the API (cluster/admin).
	if err := http2.ConfigureServer(server, nil); err != nil { //nolint:staticcheck // deprecated in favour of that of net/http, which lacks the mends
		return errors.Join(fmt.Errorf("serve admission on %s: %w", listener.Addr(), err), listener.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(netutil.LimitListener(listener, admissionConnections), "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve admission on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), admissionStop)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		_ = server.Close() // whoever is still there had his time
	}
	if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// atATime lets so many requests in at a time. Who gives up while waiting is gone.
func atATime(most int, next http.Handler) http.Handler {
	places := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		}
	})
}
