// SPDX-License-Identifier: Apache-2.0

// Package health is the plain HTTP side of every process: /livez, /healthz, /readyz and /metrics, and nothing else.
//
// It knows no process: each hands in what makes it alive and ready. Start reading at Handler.
package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/framelimit"
)

// Check tells why something is not in order, nil if it is.
type Check func() error

// Alive is the Check of a process that is alive as long as it answers.
func Alive() error { return nil }

// Checks are those of one process.
type Checks struct {
	Alive   Check // /livez: a failure says that a restart may help
	Healthy Check // /healthz: Alive, and nobody is to come here less
	Ready   Check // /readyz
	// About is a line that /livez and /healthz add, whatever they say; nil for none.
	About func() string
	// Notice is a line that /readyz adds, whatever it says: what people should look after, though others may go on counting on this
	// process. Empty for none; optional.
	Notice func() string
}

// Handler serves the Checks and, unless the registry is nil, /metrics.
func Handler(registry *prometheus.Registry, c Checks) http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]Check{"GET /livez": c.Alive, "GET /healthz": c.Healthy, "GET /readyz": c.Ready} {
		about := c.About
		if path == "GET /readyz" {
			about = c.Notice
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			text, code := "ok", http.StatusOK
			if err := check(); err != nil {
				text, code = err.Error(), http.StatusServiceUnavailable
			}
			if about != nil {
				if line := about(); line != "" {
					text += "\n" + line
				}
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.WriteHeader(code)
			_, _ = fmt.Fprintln(w, text) // who asked is gone
		})
	}
	if registry != nil {
		mux.Handle("GET /metrics", metrics(registry))
	}
	return mux
}

// Metrics serves /metrics alone.
func Metrics(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics(registry))
	return mux
}

func metrics(registry *prometheus.Registry) http.Handler {
	return newPage(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}

// limits of the port. Callers prove nothing: whoever asks has heard the answer within milliseconds, and who only holds on is not
// let in anybody's way.
func limits() connlimit.Limits {
	return connlimit.Limits{Strangers: connlimit.Room{Total: 256, PerKey: 64}, WriteWithin: writeWithin}
}

const (
	// exchangeWithin is for a request, which is a line and some headers.
	exchangeWithin = 5 * time.Second
	// writeWithin is for an answer to be taken. Metrics are some hundred KB.
	writeWithin = 10 * time.Second
	idleWithin  = 2 * time.Minute // Prometheus asks again within that
	// maxHeaderBytes have room for a token.
	maxHeaderBytes = 24 << 10
)

// Counts are those of what is turned away, and of what is read slowly. Both are optional.
type Counts struct {
	Connections *connlimit.Metrics
	Requests    *framelimit.Metrics
}

// NewCounts makes those of a registry. Errors: something else has their names.
func NewCounts(registry prometheus.Registerer) (Counts, error) {
	connections, err := connlimit.NewMetrics(registry)
	if err != nil {
		return Counts{}, err
	}
	requests, err := framelimit.NewMetrics(registry)
	return Counts{connections, requests}, err
}

// whoLooks is who a connection is of, and what that may ask for: some hundred times a second.
func whoLooks(_ tls.ConnectionState, remote net.Addr) (string, framelimit.Budget) {
	return connlimit.Source(remote), framelimit.Budget{Rate: 4000, AtOnce: 8000}
}

// Serve serves on a listener until ctx ends, and closes it. Its connections are bounded, and what a source asks for.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, counts Counts) error {
	limited := connlimit.Limit(listener, connlimit.Options{Port: "health", Limits: limits(), Metrics: counts.Connections})
	return serve(ctx, limited, &http.Server{Handler: framelimit.Requests(handler, framelimit.Options{Port: "health", Who: whoLooks, Metrics: counts.Requests})})
}

// ServeTLS is Serve for a port of its own, by TLS.
func ServeTLS(ctx context.Context, listener net.Listener, handler http.Handler, counts Counts, secured *tls.Config) error {
	secured.NextProtos = []string{"http/1.1"}
	limited := connlimit.Limit(listener, connlimit.Options{Port: "metrics", Limits: limits(), Metrics: counts.Connections})
	return serve(ctx, tls.NewListener(limited, secured), &http.Server{
		Handler:  framelimit.Requests(handler, framelimit.Options{Port: "metrics", Who: whoLooks, Metrics: counts.Requests}),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // who does not trust us, and port scanners
	})
}

func serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	server.ReadHeaderTimeout, server.ReadTimeout, server.WriteTimeout, server.IdleTimeout = exchangeWithin, exchangeWithin, writeWithin, idleWithin
	server.MaxHeaderBytes = maxHeaderBytes
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve health on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	<-ended
	return nil
}
