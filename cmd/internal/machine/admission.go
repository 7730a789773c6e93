// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/framelimit"
)

// Of the port at which the API server asks. Unless a CA of callers is named, whoever reaches it may connect.
const (
	admissionHeaderWithin = 10 * time.Second // the handshake, too
	admissionReadWithin   = 15 * time.Second
	// admissionWriteWithin is longer than the API server waits for an answer.
	admissionWriteWithin = 40 * time.Second
	admissionIdle        = 2 * time.Minute
	admissionHeaderBytes = 16 << 10
	// admissionAtATime is how many requests are read and judged at a time, of up to eight MiB each. Further ones wait.
	admissionAtATime = 64
	admissionStop    = 5 * time.Second // for requests under way when the member ends
)

// admissionLimits are of connections. An API server has one or two, and is a guest until its certificate is asked for.
func admissionLimits() connlimit.Limits {
	return connlimit.Limits{
		Strangers:      connlimit.Room{Total: 256, PerKey: 64},
		Guests:         connlimit.Room{Total: 128, PerKey: 32},
		Known:          connlimit.Room{Total: 128, PerKey: 32},
		StrangerWithin: admissionHeaderWithin,
		WriteWithin:    admissionHeaderWithin,
	}
}

// whoAsks is under which name a connection comes, and what that may send (see framelimit.Budget): a request of an API server costs about
// fifteen. Without a certificate it is everybody at its source.
func whoAsks(state tls.ConnectionState, remote net.Addr) (string, framelimit.Budget) {
	if shown := state.PeerCertificates; len(shown) > 0 {
		return shown[0].Subject.CommonName, framelimit.Budget{Rate: 20_000, AtOnce: 40_000}
	}
	return connlimit.Source(remote), framelimit.Budget{Rate: 4000, AtOnce: 8000}
}

// openAdmission makes what the API server is shown, if a configuration asks for it. The port opens when there is
// something to serve.
func (n *network) openAdmission() error {
	c := n.Config
	if c.Listen.Admission == "" && n.listeners.Admission == nil {
		return nil
	}
	o := pki.ServingOptions{Names: c.Admission.Names, Folder: c.Admission.CertDir, Files: n.files, Source: n.endpoint.Source, Log: n.Log}
	o.Callers = pki.Callers{CA: c.Admission.ClientCA, Names: c.Admission.ClientNames}
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
		limited := connlimit.Limit(listener, connlimit.Options{Port: "admission", Limits: admissionLimits(), Metrics: n.limits})
		frames := framelimit.Options{Port: "admission", Who: whoAsks, Metrics: n.frames}
		return serveAdmission(ctx, limited, frames, serving, pages, n.Log)
	}}
	return nil
}

// serveAdmission answers until ctx ends, and closes the listener.
func serveAdmission(ctx context.Context, listener net.Listener, frames framelimit.Options, serving *pki.Serving, pages http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: atATime(admissionAtATime, pages), TLSConfig: serving.Config(),
		ReadHeaderTimeout: admissionHeaderWithin, ReadTimeout: admissionReadWithin, WriteTimeout: admissionWriteWithin,
		IdleTimeout: admissionIdle, MaxHeaderBytes: admissionHeaderBytes,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug), // port scanners, and an API server that does not trust us yet
		ConnState: vouchForCaller,
	}
	if err := framelimit.Configure(server, frames); err != nil {
		return errors.Join(fmt.Errorf("serve admission on %s: %w", listener.Addr(), err), listener.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
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

// vouchForCaller tells the limits of the port how far a connection has come, once its handshake is done, and ends it at the first
// request after its certificate: an API server dials anew.
func vouchForCaller(conn net.Conn, state http.ConnState) {
	secured, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	if !ok || state != http.StateActive {
		return
	}
	limited, shown := connlimit.Of(conn), secured.ConnectionState().PeerCertificates
	switch {
	case len(shown) > 0 && time.Now().After(shown[0].NotAfter):
		_ = conn.Close() // it is gone either way
	case limited.Stage() > connlimit.Unproven: // each request on it comes by here
	case len(shown) > 0:
		limited.Vouch(connlimit.Known, shown[0].Subject.CommonName)
	default:
		limited.Vouch(connlimit.Guest, "")
	}
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
