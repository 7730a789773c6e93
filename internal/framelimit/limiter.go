// SPDX-License-Identifier: Apache-2.0

package framelimit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

const (
	// maxFrame is what HTTP/2 has at least; a frame that is longer ends its connection.
	maxFrame = 16 << 10
	// pause is the least for which reading stops, so that whoever is slowed down wakes nobody for each frame.
	pause = 50 * time.Millisecond
	// maxPause is the most, whatever is owed: many connections that share a budget go on all the same.
	maxPause = time.Second
)

// Who tells under which name a connection comes and what that may send. A name has always the same Budget.
type Who func(state tls.ConnectionState, remote net.Addr) (name string, b Budget)

// Options is what a Limiter is made of.
type Options struct {
	Port    string // its name, for metrics
	Who     Who
	Metrics *Metrics          // optional
	Slowed  func(name string) // optional: told each time when reading stops
}

// Limiter bounds what comes to one port.
type Limiter struct {
	o        Options
	accounts accounts
}

// Configure has a server with TLS speak HTTP/1.1 and HTTP/2, whose connections are bounded. To the server's hooks they are
// connections with a ConnectionState. Call it when all else of the server is set, and before it serves.
func Configure(server *http.Server, o Options) error {
	l := &Limiter{o: o, accounts: accounts{named: map[string]*account{}}}
	o.Metrics.prepare(o.Port)
	// What is mended in this HTTP/2 is in net/http only with a newer Go (hack/vuln/accepted.txt).
	protocol := &http2.Server{MaxReadFrameSize: maxFrame}           //nolint:staticcheck // deprecated in favour of that of net/http, which lacks the mends
	if err := http2.ConfigureServer(server, protocol); err != nil { //nolint:staticcheck // the same
		return err
	}
	server.TLSNextProto[http2.NextProtoTLS] = func(server *http.Server, secured *tls.Conn, handler http.Handler) {
		var base context.Context
		if has, ok := handler.(interface{ BaseContext() context.Context }); ok { // as http2.ConfigureServer does
			base = has.BaseContext()
		}
		over := l.over(secured)
		protocol.ServeConn(over, &http2.ServeConnOpts{Context: base, BaseConfig: server, Handler: handler}) //nolint:staticcheck // the same
	}
	server.Handler = l.requests(server.Handler)
	return nil
}

// Requests bounds those of a port that speaks HTTP/1.1 alone, with TLS or without: of that the state is empty then.
func Requests(next http.Handler, o Options) http.Handler {
	l := &Limiter{o: o, accounts: accounts{named: map[string]*account{}}}
	o.Metrics.prepare(o.Port)
	return l.requests(next)
}

// requests bounds those of HTTP/1.1, of which one at a time is served of a connection.
func (l *Limiter) requests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			var state tls.ConnectionState
			if r.TLS != nil {
				state = *r.TLS
			}
			remote, _ := net.ResolveTCPAddr("tcp", r.RemoteAddr) // it is one, as the server has it from the connection
			name, budget := l.o.Who(state, remote)
			a := l.accounts.enter(name, budget)
			defer l.accounts.leave(a)
			l.wait(name, a, r.Context().Done())
			a.spend(ofRequest(lengthOf(r)), time.Now())
		}
		next.ServeHTTP(w, r)
	})
}

// lengthOf is how many bytes the header of a request had, about.
func lengthOf(r *http.Request) int {
	n := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

// wait returns when an account owes nothing, after maxPause, or when somebody need not wait any more.
func (l *Limiter) wait(name string, a *account, over <-chan struct{}) {
	owed := a.owes(time.Now())
	if owed == 0 {
		return
	}
	if l.o.Slowed != nil {
		l.o.Slowed(name)
	}
	l.o.Metrics.slowed(l.o.Port)
	timer := time.NewTimer(min(max(owed, pause), maxPause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	}
}
