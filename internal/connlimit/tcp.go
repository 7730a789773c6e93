// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"time"
)

// KeepAlive finds, in some ten seconds, an end of a connection that is gone without a word: it lost power, or its cable.
func KeepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3}
}

// unheard is how long what was sent may stay without an acknowledgement: keep-alive is silent while something is on its way.
const unheard = 10 * time.Second

// noticeDeath has the kernel end the connection when the other end is gone.
func noticeDeath(c net.Conn) {
	tcp := tcpBelow(c)
	if tcp == nil {
		return
	}
	_ = tcp.SetKeepAliveConfig(KeepAlive()) // without it the server's own limits are later, not none
	_ = setUserTimeout(tcp, unheard)
}
