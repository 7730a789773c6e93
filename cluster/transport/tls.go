// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
)

// Prove finishes the handshake of an accepted connection, and tells who is at the other end, by the name of which has places of its own. What it
// reads is bounded in time by the limits of the port. Errors: whoever it is may not talk to this member.
type Prove func(plain net.Conn) (conn net.Conn, name string, err error)

// TLS proves by mutual TLS. The configuration must require and verify a member's certificate; name tells who one is of.
func TLS(server *tls.Config, name func(*x509.Certificate) (string, error)) (Prove, error) {
	if server == nil || name == nil {
		return nil, errors.New("raft transport: a server configuration and names are required")
	}
	if server.ClientAuth != tls.RequireAndVerifyClientCert && server.GetConfigForClient == nil && server.VerifyConnection == nil {
		return nil, errors.New("raft transport: the server configuration does not verify client certificates")
	}
	return func(plain net.Conn) (net.Conn, string, error) {
		conn := tls.Server(plain, server)
		if err := conn.Handshake(); err != nil {
			return nil, "", err
		}
		who, err := name(conn.ConnectionState().PeerCertificates[0])
		return conn, who, err
	}, nil
}
