// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net"
	"syscall"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/health/prober"
	"fairlead.io/fairlead/internal/connlimit"
)

// dialing opens an agent's connections to members. Programs at sockets leave them alone, so that no policy that captures where members
// are cuts agents off from who could take it back (balancing §16.3).
func dialing(c config.Agent) pki.DialFunc {
	if c.Sock == nil {
		return nil
	}
	d := net.Dialer{KeepAliveConfig: connlimit.KeepAlive(), Control: func(_, _ string, raw syscall.RawConn) error {
		_ = prober.Exempt(raw) // better a connection that a policy may capture than none
		return nil
	}}
	return d.DialContext
}
