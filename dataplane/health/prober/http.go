// SPDX-License-Identifier: Apache-2.0

//go:build linux

package prober

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/health"
)

// maxHead bounds the head of an answer, in bytes. Nothing behind it is read.
const maxHead = 16 << 10

// get probes by a request. The certificate of an address is not verified: it is about names, which addresses do not have here.
// Nor is one asked for by a name (RFC 6066 has none for addresses). Redirections are answers, too.
func (p Prober) get(ctx context.Context, t health.Target) error {
	way := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return p.dial(ctx, network, address)
		},
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHead,
	}
	defer way.CloseIdleConnections()
	at := url.URL{Scheme: "http", Host: t.At.String()}
	if t.Type == desired.ProbeHTTPS {
		at.Scheme = "https"
	}
	whole, err := at.Parse(t.Path)
	if err != nil || whole.Host != at.Host {
		return fmt.Errorf("%w: %q is no path", errHost, t.Path)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, whole.String(), nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errHost, err)
	}
	req.Header.Set("User-Agent", "fairlead-probe")
	answer, err := way.RoundTrip(req)
	if err != nil {
		return withoutWrapping(err)
	}
	_ = answer.Body.Close()
	if !t.Expects(answer.StatusCode) {
		return fmt.Errorf("it answers %d", answer.StatusCode)
	}
	return nil
}

// withoutWrapping is what a dial failed by, if it did.
func withoutWrapping(err error) error {
	var dial *net.OpError
	if errors.As(err, &dial) {
		return dial
	}
	return err
}
