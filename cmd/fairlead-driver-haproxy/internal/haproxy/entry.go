// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// key names one server of ours: HAProxy's backend, and the address of the server, IPv4 never as IPv6.
type key struct {
	backend string
	address netip.AddrPort
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.backend, o.backend), k.address.Compare(o.address))
}

// wish is what a server of ours shall be like.
type wish struct {
	weight  int // 0 to 256
	maxConn int // 0: as many as come
	// interval is how often HAProxy checks whether it answers, in whole units; 0: it does not check.
	interval time.Duration
}

// Mark begins the names of our servers: MARK-IP_PORT. It is letters and digits.
type Mark string

// DefaultMark is the mark of drivers that are not told another.
const DefaultMark Mark = "fl"

// name is what our server with an address is called. Colons of IPv6 are allowed in names, brackets are not.
func (m Mark) name(a netip.AddrPort) string {
	return string(m) + "-" + a.Addr().String() + "_" + strconv.Itoa(int(a.Port()))
}

// ParseMark reads a mark. Errors: it is empty, or has other characters than letters and digits.
func ParseMark(s string) (Mark, error) {
	other := func(r rune) bool { return !alphanumeric(r) }
	if s == "" || strings.ContainsFunc(s, other) {
		return "", fmt.Errorf("mark %q: give letters and digits", s)
	}
	return Mark(s), nil
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// backendKey is the one field of lbSpec and lbInfo.
const backendKey = "backend"

// parseBackend reads the backend's name out of lbSpec or lbInfo. The name becomes part of commands.
func parseBackend(m webhook.Map) (string, error) {
	const longest = 255
	name := m[backendKey]
	switch {
	case name == "":
		return "", fmt.Errorf("it lacks %q, the name of a backend of HAProxy's configuration", backendKey)
	case len(name) > longest:
		return "", fmt.Errorf("%q is longer than %d bytes", backendKey, longest)
	case strings.ContainsFunc(name, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_.:", r) }):
		return "", fmt.Errorf("%q is no name of a backend: %q", backendKey, name)
	}
	return name, only(m, backendKey)
}

// only refuses keys other than the known ones.
func only(m webhook.Map, known ...string) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, k) {
			return fmt.Errorf("%.80q is not known; there is %s", k, strings.Join(known, ", "))
		}
	}
	return nil
}

// parseAddress reads the address of a backend.
func parseAddress(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	switch {
	case err != nil:
		return netip.AddrPort{}, fmt.Errorf("address %.80q: not IP:PORT, with brackets around IPv6", s)
	case a.Addr().Zone() != "" || a.Addr().IsUnspecified() || a.Port() == 0:
		return netip.AddrPort{}, fmt.Errorf("address %s: not one of a server", a)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

// Parameters of backends.
const (
	weightKey   = "weight"
	maxConnKey  = "maxconn"
	checkKey    = "check"
	intervalKey = "interval"
)

// Bounds of intervalKey, and what it is where nobody says.
const (
	shortestInterval = intervalUnit
	longestInterval  = time.Hour
	defaultInterval  = 2 * time.Second // HAProxy's
)

// parseParameters reads what a user wants of backends. HAProxy's own defaults hold: weight 1, no bound on connections, and
// no health checks.
func parseParameters(m webhook.Map) (wish, error) {
	w := wish{weight: 1}
	for _, p := range []struct {
		key  string
		most int
		into *int
	}{{weightKey, 256, &w.weight}, {maxConnKey, 1_000_000, &w.maxConn}} {
		text, ok := m[p.key]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > p.most {
			return wish{}, fmt.Errorf("%s %.40q: not a number from 0 to %d", p.key, text, p.most)
		}
		*p.into = n
	}
	var err error
	if w.interval, err = parseCheck(m); err != nil {
		return wish{}, err
	}
	return w, only(m, weightKey, maxConnKey, checkKey, intervalKey)
}

// parseCheck reads how often health is checked, 0 for never.
func parseCheck(m webhook.Map) (time.Duration, error) {
	text, timed := m[intervalKey]
	switch check := m[checkKey]; check {
	case "true":
	case "", "false":
		if timed {
			return 0, fmt.Errorf("%s: nothing is checked without %s \"true\"", intervalKey, checkKey)
		}
		return 0, nil
	default:
		return 0, fmt.Errorf("%s %.40q: neither true nor false", checkKey, check)
	}
	if !timed {
		return defaultInterval, nil
	}
	interval, err := time.ParseDuration(text)
	if err != nil || interval < shortestInterval || interval > longestInterval || interval%intervalUnit != 0 {
		return 0, fmt.Errorf("%s %.40q: not a time from %v to %v in steps of %v, such as 2s or 500ms",
			intervalKey, text, shortestInterval, longestInterval, intervalUnit)
	}
	return interval, nil
}
