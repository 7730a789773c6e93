// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"fmt"
	"time"
)

// intervalUnit is the unit in which the interval of checks is noted as the port of an agent. HAProxy's tables show that
// port, which is of no use without agent checks, and not the interval. A port is at most 65535.
const intervalUnit = 100 * time.Millisecond

// planEnsure is what HAProxy is told so that a server of ours is as wanted; have is what it is now, nil if it is not.
// Telling it again is harmless. A dynamic server begins in maintenance.
func planEnsure(m Mark, k key, w wish, have *Server) []string {
	at := k.backend + "/" + m.name(k.address)
	if have == nil {
		commands := []string{
			fmt.Sprintf("add server %s %s weight %d maxconn %d", at, k.address, w.weight, w.maxConn),
			fmt.Sprintf("set server %s state ready", at),
		}
		if w.interval > 0 {
			commands[0] += fmt.Sprintf(" check inter %d agent-port %d", w.interval.Milliseconds(), w.interval/intervalUnit)
			commands = append(commands, "enable health "+at)
		}
		return commands
	}
	var commands []string
	if have.Address != k.address { // somebody changed it: the name says whose it is
		commands = append(commands, fmt.Sprintf("set server %s addr %s port %d", at, k.address.Addr(), k.address.Port()))
	}
	if have.Weight != w.weight {
		commands = append(commands, fmt.Sprintf("set server %s weight %d", at, w.weight))
	}
	if !have.ready() {
		commands = append(commands, fmt.Sprintf("set server %s state ready", at))
	}
	switch {
	case w.interval > 0 && !have.checked():
		commands = append(commands, "enable health "+at)
	case w.interval == 0 && have.checked(): // what was down stays down if nobody checks it any more, unless it is told otherwise
		commands = append(commands, "disable health "+at, fmt.Sprintf("set server %s health up", at))
	}
	return commands
}

// planReplace is what HAProxy is told so that a server of ours is gone at once if it has no connections: what is checked,
// and how often, can be said only of a server that is added.
func planReplace(m Mark, k key) []string {
	at := k.backend + "/" + m.name(k.address)
	return []string{fmt.Sprintf("set server %s state maint", at), fmt.Sprintf("del server %s", at)}
}

// planServe is what HAProxy is told so that a server of ours that was to be replaced goes on as before.
func planServe(m Mark, k key) []string {
	return []string{fmt.Sprintf("set server %s/%s state ready", k.backend, m.name(k.address))}
}

// planMaxConn is what HAProxy is told so that a server of ours, which is there, takes as many connections as wanted. Its
// tables do not show how many that are: it says nothing if it has done it.
func planMaxConn(m Mark, k key, w wish) string {
	return fmt.Sprintf("set maxconn server %s/%s %d", k.backend, m.name(k.address), w.maxConn)
}

// asWanted tells whether have is what planEnsure wants, as far as it shows.
func asWanted(k key, w wish, have *Server) bool {
	return have != nil && have.Address == k.address && have.Weight == w.weight && have.ready() &&
		have.checked() == (w.interval > 0) && (w.interval == 0 || have.Interval == w.interval)
}

// planRemove is what HAProxy is told so that a server of ours goes. Maintenance keeps new requests away, and those that
// run go on; a server with connections is not deleted. After drain in maintenance its connections are shut.
func planRemove(m Mark, k key, have Server, drain time.Duration) []string {
	at := k.backend + "/" + m.name(k.address)
	var commands []string
	switch {
	case !have.maintained():
		commands = append(commands, fmt.Sprintf("set server %s state maint", at))
	case have.Since >= drain:
		commands = append(commands, fmt.Sprintf("shutdown sessions server %s", at))
	}
	return append(commands, fmt.Sprintf("del server %s", at))
}
