// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/start"
)

// The network of a world vouches for the machine at the other end, as mutual TLS does for the name in a certificate.
// What handshakes say of group and epoch travels with the first words of a connection, and is judged by the same
// function.

// dial connects to a port of a host.
func (g *guest) dial(ctx context.Context, host, at string, hello []byte) (net.Conn, error) {
	return g.port.Dial(ctx, host, at, hello)
}

// membershipHeader carries it in requests.
const membershipHeader = "Fairlead-Membership"

func membershipText(m pki.Membership) string {
	return strings.TrimRight(strings.Join([]string{m.Group, strconv.FormatUint(m.Epoch, 10), strconv.FormatBool(m.OrNewer), m.Nonce}, " "), " ")
}

func parseMembership(text string) (m pki.Membership, err error) {
	parts := strings.Split(text, " ")
	if len(parts) < 3 || len(parts) > 4 {
		return m, errors.New("malformed membership")
	}
	m.Group = parts[0]
	if len(parts) == 4 {
		m.Nonce = parts[3]
	}
	if m.Epoch, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return m, err
	}
	m.OrNewer, err = strconv.ParseBool(parts[2])
	return m, err
}

// client is a way to the member whose API is at address, for who is what of says.
func (g *guest) client(of func() pki.Membership, address string) *admin.Client {
	return admin.NewClientOver(doer{g: g, of: of, address: address}, address)
}

// doer makes requests to one member.
type doer struct {
	g       *guest
	of      func() pki.Membership
	address string
}

// Do implements connect.HTTPClient.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	header := http.Header{membershipHeader: {membershipText(d.of())}}
	do := d.g.do
	if own := d.g.handshakes.own(); own != "" {
		header.Set(certificateHeader, own)
		do = d.g.doOver
	}
	response, err := do(r, port.RoundTripper{Port: d.g.port, Address: d.address, Header: header})
	if err != nil && errors.Is(err, port.ErrRefused) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} // surely not sent, as a real dial would say
	}
	return response, err
}

func (g *guest) do(r *http.Request, by port.RoundTripper) (*http.Response, error) { return by.Do(r) }

// doOver does a request after a handshake, and ends it once the other end is refused.
func (g *guest) doOver(r *http.Request, by port.RoundTripper) (*http.Response, error) {
	machine, _, err := net.SplitHostPort(by.Address)
	if err != nil {
		return nil, err
	}
	cert, err := g.handshakes.of(r.Context(), machine)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	ctx, end := context.WithCancelCause(r.Context())
	over := g.handshakes.keep(machine, cert, func(why error) { end(fmt.Errorf("%w: %w", errBarred, why)) })
	response, err := by.Do(r.WithContext(ctx))
	if err != nil {
		over()
		end(nil)
		return nil, because(ctx, err)
	}
	response.Body = keptBody{response.Body, ctx, func() {
		over()
		end(nil)
	}}
	return response, nil
}

// openNetwork implements member.Edges.
func (g *guest) openNetwork(o member.NetworkOptions) (*member.Network, error) {
	of := o.Self
	g.handshakes.revoked = o.Revoked
	if g.handshakes.on() {
		go g.handshakes.serve() // it ends with the process
	}
	raftPort, err := g.openRaft(of, o.Log)
	if err != nil {
		return nil, err
	}
	api := g.port.Listen(start.APIPort)
	return &member.Network{
		Raft:     &watchedTransport{Transport: raftPort, follows: map[raft.ServerID]bool{}},
		Peers:    admin.NewPeersOver(func(address string) *admin.Client { return g.client(of, address) }),
		EndStale: g.handshakes.endStale,
		ServeAPI: func(ctx context.Context, server *admin.Server) error {
			return port.Serve(ctx, api, g.callers(of, server.Handler()))
		},
		Close: func() {
			_ = api.Close()
			_ = raftPort.Close()
		},
	}, nil
}

// callers names who calls, or breaks the connection as a refused handshake does.
func (g *guest) callers(of func() pki.Membership, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := admin.Caller{Identity: g.identity(port.PeerFrom(r.Context())), Remote: r.RemoteAddr}
		if text := r.Header.Get(membershipHeader); text != "" {
			theirs, err := parseMembership(text)
			if err != nil || pki.Meet(of(), theirs) != pki.Welcome {
				panic(http.ErrAbortHandler)
			}
			caller.Membership = theirs
		}
		text := r.Header.Get(certificateHeader)
		if text == "" {
			next.ServeHTTP(w, r.WithContext(admin.WithCaller(r.Context(), caller)))
			return
		}
		machine := port.PeerFrom(r.Context())
		cert, err := g.handshakes.judge(machine, text)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		caller.Certificate, caller.Serial = cert, pki.Serial(cert)
		ctx, end := context.WithCancelCause(admin.WithCaller(r.Context(), caller))
		over := g.handshakes.keep(machine, cert, func(why error) { end(fmt.Errorf("%w: %w", errBarred, why)) })
		next.ServeHTTP(w, r.WithContext(ctx))
		over()
		if errors.Is(context.Cause(ctx), errBarred) {
			panic(http.ErrAbortHandler) // nobody is there any more to answer
		}
		end(nil)
	})
}

// worldsMachine is that of the world's own clients (sim/client), which no server is of. Members take them for themselves, so that what they may do
// ends with the member that they ask.
const worldsMachine = "m0"

// identity is what a machine's certificate would say: members and nodes are named in the world's own way, or are those
// that the process was told of; everybody else is an operator.
func (g *guest) identity(machine string) pki.Identity {
	id := pki.Identity{Domain: "fairlead", Role: pki.Operator, Name: machine}
	switch {
	case machine == worldsMachine:
		id.Role, id.Name = pki.Member, g.start.Name
	case isNumbered(machine, "m"):
		id.Role = pki.Member
	case isNumbered(machine, "n"), slices.Contains(g.start.Nodes, machine):
		id.Role = pki.Agent
	}
	return id
}

func isNumbered(machine, prefix string) bool {
	rest, ok := strings.CutPrefix(machine, prefix)
	return ok && rest != "" && !slices.ContainsFunc([]rune(rest), func(r rune) bool { return r < '0' || r > '9' })
}
