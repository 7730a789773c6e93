// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/tls"
	"net/http"

	"fairlead.io/fairlead/cmd/internal/health"
)

// serveMetrics answers at metrics.listen by TLS, with the certificate that this member shows others, until ctx ends.
func (n *network) serveMetrics(ctx context.Context, pages http.Handler) error {
	return health.ServeTLS(ctx, n.listeners.metrics, pages, health.Counts{Connections: n.limits, Requests: n.frames}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &n.endpoint.Source.Material().Certificate, nil
		},
	})
}
