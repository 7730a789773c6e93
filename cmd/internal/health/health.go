// SPDX-License-Identifier: Apache-2.0

// Package health is the plain HTTP side of every process: /livez, /healthz, /readyz and /metrics, and nothing else.
//
// It knows no process: each hands in what makes it alive and ready. Start reading at Handler.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
}

// Handler serves the Checks and /metrics.
func Handler(registry *prometheus.Registry, c Checks) http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]Check{"GET /livez": c.Alive, "GET /healthz": c.Healthy, "GET /readyz": c.Ready} {
		about := c.About
		if path == "GET /readyz" {
			about = nil
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			text, code := "ok", http.StatusOK
			if err := check(); err != nil {
				text, code = err.Error(), http.StatusServiceUnavailable
			}
			if about != nil {
				text += "\n" + about()
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.WriteHeader(code)
			_, _ = fmt.Fprintln(w, text) // who asked is gone
		})
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// Serve serves on a listener until ctx ends, and closes it.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 8 << 10}
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
