// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// timers say when the parts give each other up.
type timers struct {
	heartbeat       time.Duration // of the group: a follower waits so long for its leader
	demote          time.Duration // a member has its paths rank last after so long without the others
	hold, keepalive int           // of BGP sessions, seconds
}

// timers are those of a small and quick data centre, or what nobody misses who merely runs slowly.
func (o Options) timers() timers {
	if o.Patient {
		return timers{heartbeat: 2 * time.Second, demote: 2 * time.Minute, hold: 180, keepalive: 10}
	}
	return timers{heartbeat: 150 * time.Millisecond, demote: 3 * time.Second, hold: 3, keepalive: 1}
}
