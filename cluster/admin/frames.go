// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"crypto/tls"
	"log/slog"
	"net"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/framelimit"
)

// frameBudgets is what the connections of one certificate, by role and name, may send before anybody looks at what is called: see
// framelimit.Budget. A unary call costs about twenty, a message on a stream one for each 16 KiB. An agent that acknowledges as often as its
// Budget allows is far below; a member hands on what all agents and people ask.
func frameBudgets() map[pki.Role]framelimit.Budget {
	agent := framelimit.Budget{Rate: 4000, AtOnce: 8000}
	person := framelimit.Budget{Rate: 20_000, AtOnce: 40_000}
	return map[pki.Role]framelimit.Budget{
		pki.Agent: agent, pki.Host: agent, pki.Operator: person, pki.Viewer: person, pki.Member: {Rate: 200_000, AtOnce: 400_000},
	}
}

// framesOfStrangers is what all those of one source may send who have no certificate. To enrol costs some thirty, and counts once a second.
func framesOfStrangers() framelimit.Budget { return framelimit.Budget{Rate: 250, AtOnce: 2500} }

// whoSends is under which name a connection comes, and what that may send.
func whoSends(state tls.ConnectionState, remote net.Addr) (string, framelimit.Budget) {
	if shown := state.PeerCertificates; len(shown) > 0 {
		if identity, err := pki.Identify(shown[0]); err == nil {
			return identity.String(), frameBudgets()[identity.Role]
		}
	}
	return connlimit.Source(remote), framesOfStrangers()
}

// slowed tells of those whom a port reads more slowly, now and then.
func slowed(log *slog.Logger, repeats *pki.Repeats) func(name string) {
	return func(name string) {
		if suppressed, due := repeats.Due("frames " + name); due {
			log.Warn("connection over its limit", "identity", name, "reason", "more frames of HTTP/2, or requests, come than could be meant",
				"remedy", "if it has a certificate, somebody else may have it: revoke it (`fairlead pki revoke`)", "suppressed", suppressed)
		}
	}
}
