// SPDX-License-Identifier: Apache-2.0

// Package weight reads what a Service says its endpoints weigh, as docs/nat.md has it under Weights: a reading of its own, for those who
// judge the one that ships.
package weight

import (
	"net/netip"
	"path"
	"strconv"
	"strings"
)

// Annotation is where a Service says so.
const Annotation = "fairlead.io/endpoint-weights"

// Endpoint is what rules may name.
type Endpoint struct {
	Pod, Node, Zone string // names; empty where there is none
	Address         netip.Addr
}

// mostRules is how many rules of a Service count.
const mostRules = 64

// Of gives the weight that an endpoint has by an annotation: 1 unless a rule names it.
func Of(annotation string, e Endpoint) uint16 {
	rules := 0
	for rule := range strings.SplitSeq(annotation, ",") {
		if strings.TrimSpace(rule) == "" {
			continue
		}
		if rules == mostRules {
			break
		}
		whose, number, _ := strings.Cut(rule, "=")
		names, readable := named(strings.TrimSpace(whose), e)
		if !readable {
			continue
		}
		if rules++; !names {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 16)
		if err != nil {
			return 1
		}
		return uint16(n)
	}
	return 1
}

// named tells whether a rule names an endpoint. It is not readable if it names nothing that there can be.
func named(whose string, e Endpoint) (names, readable bool) {
	kind, pattern, of := strings.Cut(whose, "/")
	if !of {
		a, err := netip.ParseAddr(whose)
		return err == nil && a.Unmap() == e.Address.Unmap(), err == nil
	}
	name, known := map[string]string{"pod": e.Pod, "node": e.Node, "zone": e.Zone}[kind]
	matches, err := path.Match(pattern, name)
	return matches && name != "", known && err == nil && pattern != ""
}
