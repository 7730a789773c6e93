// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Each call costs a signature and may cost a question to Kubernetes: 1,000 agents that enrol at once are done within
// 20 s, and one host that guesses tokens is slow.
const (
	callsPerSecond, callsAtOnce         = 50, 100
	hostCallsPerSecond, hostCallsAtOnce = 1, 10
	// maxHosts bounds what strangers can make us remember.
	maxHosts = 4096
)

// limits is how often strangers may call.
type limits struct {
	mu    sync.Mutex
	all   *rate.Limiter
	hosts map[string]*rate.Limiter
}

func newLimits() *limits {
	return &limits{all: rate.NewLimiter(callsPerSecond, callsAtOnce), hosts: map[string]*rate.Limiter{}}
}

// allow tells whether a caller at an address may call now.
func (l *limits) allow(remote string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	host := hostOf(remote)
	own, known := l.hosts[host]
	if !known {
		l.forget(now)
		own = rate.NewLimiter(hostCallsPerSecond, hostCallsAtOnce)
		l.hosts[host] = own
	}
	return own.AllowN(now, 1) && l.all.AllowN(now, 1)
}

// forget makes room once too many hosts are remembered: first those that owe nothing, and if none does, all.
func (l *limits) forget(now time.Time) {
	if len(l.hosts) < maxHosts {
		return
	}
	for host, own := range l.hosts {
		if own.TokensAt(now) >= hostCallsAtOnce {
			delete(l.hosts, host)
		}
	}
	if len(l.hosts) >= maxHosts {
		clear(l.hosts)
	}
}

// hostOf leaves out the port, which is another one for each attempt.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}
