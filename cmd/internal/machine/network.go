// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/transport"
	"fairlead.io/fairlead/cmd/internal/health"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/framelimit"
)

// Listeners are the sockets of a member. Those left nil are opened as the configuration says.
type Listeners struct {
	API, Raft, Health, Admission net.Listener

	metrics net.Listener
}

// network is sockets with mutual TLS.
type network struct {
	member.NetworkOptions
	files     pki.Files // of the certificate that is kept fresh
	endpoint  *pki.Endpoint
	peers     *admin.Peers
	listeners Listeners
	limits    *connlimit.Metrics
	frames    *framelimit.Metrics
	raft      *transport.Transport
	admission *member.Admission // nil: not asked for
}

// openNetwork builds it bottom-up. After an error nothing is left open.
func openNetwork(o member.NetworkOptions, listeners Listeners) (*member.Network, error) {
	limits, err := connlimit.NewMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	frames, err := framelimit.NewMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	n := &network{NetworkOptions: o, listeners: listeners, limits: limits, frames: frames}
	for _, step := range []func() error{n.openIdentity, n.listen, n.openAdmission, n.openRaft} {
		if err := step(); err != nil {
			n.close()
			return nil, err
		}
	}
	open := &member.Network{
		Raft: n.raft, Peers: n.peers, Endpoint: n.endpoint, Files: n.files, Admission: n.admission, Close: n.close,
		EndStale: func() { n.endpoint.EndStale() },
		ServeAPI: func(ctx context.Context, server *admin.Server) error { return server.Serve(ctx, n.listeners.API) },
	}
	if n.listeners.Health != nil {
		open.ServeHealth = func(ctx context.Context, pages http.Handler) error {
			return health.Serve(ctx, n.listeners.Health, pages, health.Counts{Connections: n.limits, Requests: n.frames})
		}
	}
	if n.listeners.metrics != nil {
		open.ServeMetrics = n.serveMetrics
	}
	return open, nil
}

func (n *network) openIdentity() (err error) {
	c := n.Config
	if n.files, err = pki.Files(c.TLS.TLS).Renewable(filepath.Join(c.DataDir, "tls")); err != nil {
		return err
	}
	source, err := pki.OpenTrusted(n.files, n.Log)
	if err != nil {
		return err
	}
	if id := source.Material().Identity; id.Role != pki.Member || id.Name != c.Name {
		return fmt.Errorf("%s: the certificate is %s's, this member is member/%s; issue one with `fairlead pki issue member %s`",
			c.TLS.Cert, id, c.Name, c.Name)
	}
	refusals, err := pki.NewRefusals(n.Log, n.Metrics, time.Now)
	if err != nil {
		return err
	}
	n.endpoint = &pki.Endpoint{Source: source, Self: n.Self, Refusals: refusals, Enrols: true, Revoked: n.Revoked, Clients: &pki.Clients{}, Dialed: &pki.Dialed{}}
	n.peers = admin.NewPeers(n.endpoint, n.dial)
	return nil
}

func (n *network) listen() (err error) {
	open := func(l *net.Listener, field, address string) {
		if *l != nil || address == "" || err != nil {
			return
		}
		*l, err = listen(field, address)
	}
	open(&n.listeners.API, "listen.api", n.Config.Listen.API)
	open(&n.listeners.Raft, "listen.raft", n.Config.Listen.Raft)
	open(&n.listeners.Health, "listen.health", n.Config.Listen.Health)
	open(&n.listeners.metrics, "metrics.listen", n.Config.Metrics.Listen)
	return err
}

// listen opens what a field of a configuration names.
func listen(field, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w; is another process there, or the address not this machine's?", field, address, err)
	}
	return l, nil
}

func (n *network) openRaft() (err error) {
	prove, err := transport.TLS(n.endpoint.Server(pki.Raft), func(cert *x509.Certificate) (string, error) {
		id, err := pki.Identify(cert)
		return id.String(), err
	})
	if err != nil {
		return err
	}
	n.raft, err = transport.Listen(transport.Options{
		Listener: pki.Wrap(n.listeners.Raft), Advertise: n.Config.Advertise.Raft, Prove: prove, Log: n.Log,
		Members: n.Config.MemberAddresses(), Metrics: n.limits,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return n.endpoint.Dial(ctx, n.dial, pki.Raft, address)
		},
	})
	return err
}

// dial connects from the address that this member listens on, where it is a particular one: on a machine with
// several, firewalls and logs of the others know that one.
func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: connlimit.KeepAlive()}
	if host, _, err := net.SplitHostPort(n.Config.Listen.Raft); err == nil {
		if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
			d.LocalAddr = &net.TCPAddr{IP: ip}
		}
	}
	return d.DialContext(ctx, network, address)
}

func (n *network) close() {
	if n.raft != nil {
		_ = n.raft.Close()
	}
	for _, l := range []net.Listener{n.listeners.API, n.listeners.Raft, n.listeners.Health, n.listeners.Admission, n.listeners.metrics} {
		if l != nil {
			_ = l.Close()
		}
	}
	if n.peers != nil {
		n.peers.Close()
	}
}
