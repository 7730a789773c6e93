// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"fairlead.io/fairlead/fsm/world"
)

// maxWeightRules bounds the rules of one Service: every one is tried on every endpoint.
const maxWeightRules = 64

// weights reads rules like "pod/web-canary-*=1, node/big-*=4, zone/b=0, 192.0.2.7=2", of which the first that names an
// endpoint counts. A rule without a readable weight gives the default, so that a later one does not take its place; one
// that names nothing readable is left out.
func (r *report) weights(text string) (out []world.WeightRule) {
	field := annotationField(AnnotationEndpointWeights)
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if len(out) == maxWeightRules {
			r.degrade(field, "use patterns, as in pod/web-*=2", "rules from %q on are passed over: %d are as many as count", entry, maxWeightRules)
			return out
		}
		whose, number, _ := strings.Cut(entry, "=")
		rule, err := weightRule(strings.TrimSpace(whose))
		if err != nil {
			r.degrade(field, "write address=N, pod/NAME=N, node/NAME=N or zone/NAME=N", "%q is passed over: %v", entry, err)
			continue
		}
		weight, err := strconv.ParseUint(strings.TrimSpace(number), 10, 16)
		if err != nil {
			r.degrade(field, "use a whole number from 0 to 65535", "the weight in %q cannot be read and counts as %d", entry, world.DefaultWeight)
			weight = world.DefaultWeight
		}
		rule.Weight = uint16(weight)
		out = append(out, rule)
	}
	return out
}

// weightRule reads whose weight a rule gives.
func weightRule(whose string) (world.WeightRule, error) {
	by, pattern, named := strings.Cut(whose, "/")
	if !named {
		a, err := netip.ParseAddr(whose)
		if err != nil {
			return world.WeightRule{}, fmt.Errorf("%q is no IP address", whose)
		}
		return world.WeightRule{By: world.ByAddress, Pattern: a.Unmap().String()}, nil
	}
	rule := world.WeightRule{By: world.WeightBy(by), Pattern: pattern}
	switch rule.By {
	case world.ByPod, world.ByNode, world.ByZone:
	default:
		return rule, fmt.Errorf("%q is none of pod, node and zone", by)
	}
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		return rule, fmt.Errorf("%q is no name, nor a pattern of names", pattern)
	}
	return rule, nil
}
