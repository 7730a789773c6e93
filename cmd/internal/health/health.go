// SPDX-License-Identifier: Apache-2.0

// Package health is the plain HTTP side of every process: /healthz, /readyz and /metrics, and nothing else.
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

// Handler serves /healthz by alive, /readyz by ready, and /metrics.
func Handler(registry *prometheus.Registry, alive, ready Check) http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]Check{"GET /healthz": alive, "GET /readyz": ready} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
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
