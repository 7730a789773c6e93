// SPDX-License-Identifier: Apache-2.0

package world

import "path"

// WeightBy is what of an endpoint a WeightRule looks at.
type WeightBy string

// What endpoints are named by.
const (
	ByAddress WeightBy = "address"
	ByPod     WeightBy = "pod"
	ByNode    WeightBy = "node"
	ByZone    WeightBy = "zone"
)

// WeightRule gives a weight to the endpoints that it names.
type WeightRule struct {
	By WeightBy
	// Pattern is what the address, or the name of pod, node or zone, is compared with, as path.Match has it.
	Pattern string
	// Weight is a share of new connections, beside the others' shares; 0 for none.
	Weight uint16
}

// DefaultWeight is that of endpoints that no rule names.
const DefaultWeight = 1

// WeightOf is the weight of an endpoint of the Service: that of the first rule which names it.
func (s *Service) WeightOf(e *Endpoint) uint16 {
	for _, r := range s.Choice().Weights {
		name := r.of(e)
		if named, err := path.Match(r.Pattern, name); name != "" && named && err == nil { // * does not mean what has no name
			return r.Weight
		}
	}
	return DefaultWeight
}

func (r WeightRule) of(e *Endpoint) string {
	switch r.By {
	case ByPod:
		return e.Pod
	case ByNode:
		return e.At().Node
	case ByZone:
		return e.At().Zone
	}
	return e.Address.String()
}
