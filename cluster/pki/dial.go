// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// DialFunc opens a plain connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dial connects to a member's port over dial and finishes the handshake. The errors are explained.
//
// With TLS 1.3 a client is done before the server has looked at its certificate: that the server refused it
// shows as an error of the first read (see Explain).
func (e *Endpoint) Dial(ctx context.Context, dial DialFunc, port Port, address string) (*tls.Conn, error) {
	config, err := e.Client(port, address)
	if err != nil {
		return nil, err
	}
	plain, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	var own *tls.Certificate
	if get := config.GetClientCertificate; get != nil {
		config.GetClientCertificate = func(r *tls.CertificateRequestInfo) (cert *tls.Certificate, err error) {
			own, err = get(r)
			return own, err
		}
	}
	below := &dialed{Conn: plain}
	conn := tls.Client(below, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close() // of no use any more, and why is known
		return nil, fmt.Errorf("connect to %s: %w", address, Explain(err))
	}
	theirs := conn.ConnectionState().PeerCertificates[0]
	e.endWith(below, own, theirs)
	e.Dialed.add(below, theirs)
	if err := e.checkRevoked(theirs, address); err != nil { // since the handshake looked
		_ = below.Close()
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}

// ErrRefusedByPeer is part of errors that the other side caused by refusing us; its log says more.
var ErrRefusedByPeer = errors.New("refused by the peer")

// Explain adds to an error of TLS what a person can do about it. Other errors, and nil, it gives back as they are.
func Explain(err error) error {
	var operation *net.OpError
	var host x509.HostnameError
	switch {
	case err == nil || errors.Is(err, ErrRefusedByPeer):
		return err
	case errors.As(err, &operation) && operation.Op == "remote error":
		return fmt.Errorf("%w: %w; %s", ErrRefusedByPeer, err, alertRemedy(operation.Err.Error()))
	case errors.As(err, &host):
		return fmt.Errorf("%w; issue the member's certificate with this host", err)
	case certReason(err) == reasonUnknownCA:
		return fmt.Errorf("%w; name the ca.crt of this group", err)
	case certReason(err) == reasonExpired:
		return fmt.Errorf("%w; issue the member's certificate anew, and compare the clocks", err)
	default:
		return err
	}
}

// alertRemedy tells the alerts apart by their text: crypto/tls keeps their type to itself.
func alertRemedy(alert string) string {
	switch {
	case strings.Contains(alert, "no application protocol"):
		return "it belongs to another group or another epoch of ours; its log names both"
	case strings.Contains(alert, "certificate"):
		return "it does not accept our certificate; its log says why"
	default:
		return "its log says why"
	}
}
