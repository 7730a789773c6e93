// SPDX-License-Identifier: Apache-2.0

package framelimit

import (
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// updateBytes are those for which a client may send a WINDOW_UPDATE that costs nothing. Clients in Go send two for every 4 KiB.
	updateBytes = 1 << 10
	// maxUpdates bounds how many of those it may save up: for 64 MiB.
	maxUpdates = 64 << 10
)

// conn is a connection to a server of HTTP/2, on top of TLS.
type conn struct {
	*tls.Conn
	limiter *Limiter
	name    string
	account *account
	closed  chan struct{}
	close   func() error

	followed follower // only whoever reads
	sent     atomic.Int64
	updates  int64 // WINDOW_UPDATEs that there were; only whoever reads
}

func (l *Limiter) over(secured *tls.Conn) *conn {
	state := secured.ConnectionState()
	name, budget := l.o.Who(state, secured.RemoteAddr())
	c := &conn{
		Conn: secured, limiter: l, name: name, account: l.accounts.enter(name, budget), closed: make(chan struct{}), followed: newFollower(),
	}
	c.close = sync.OnceValue(func() error {
		close(c.closed)
		l.accounts.leave(c.account)
		return secured.Close()
	})
	return c
}

// Close implements net.Conn.
func (c *conn) Close() error { return c.close() }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	c.limiter.wait(c.name, c.account, c.closed)
	n, err := c.Conn.Read(p)
	cost, updates := c.followed.follow(p[:n])
	if cost += c.unearned(updates); cost > 0 {
		c.account.spend(cost, time.Now())
	}
	return n, err
}

// unearned is how many of so many WINDOW_UPDATEs nothing was sent for.
func (c *conn) unearned(updates int) int {
	if updates == 0 {
		return 0
	}
	earned := c.sent.Load() / updateBytes
	c.updates = max(c.updates, earned-maxUpdates) + int64(updates)
	over := max(0, c.updates-earned)
	c.updates -= over
	return int(over) * frameCost
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}
