// SPDX-License-Identifier: Apache-2.0

package member

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/admission/policies"
	"fairlead.io/fairlead/k8s/api/balancing"
)

// numbers are the ids that this member's record knows of.
type numbers struct{ state *fsm.State }

// Holder is policies.Numbers'.
func (n numbers) Holder(id balancing.ID) (policies.Holder, bool) {
	of, gone, held := n.state.Read().NumberHolder(uint32(id))
	kind, name, _ := strings.Cut(string(of), "/")
	return policies.Holder{Kind: admission.Kind(kind), Name: name, Gone: gone}, held
}

// policyRoutes are the handlers by which policies of client-side balancing are judged; none unless the configuration says how.
func (m *Member) policyRoutes(metrics *admission.Metrics) (map[string]http.Handler, error) {
	conflict := m.config.Admission.PolicyConflict
	if conflict == "" {
		return nil, nil
	}
	shelf, err := policies.NewShelf(m.kube)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(m.edges.Random.Uint64(), m.edges.Random.Uint64()))
	h := policies.Handler{Look: shelf.Look, Numbers: numbers{m.state}, Metrics: metrics, Rules: policies.Rules{
		Conflict: policies.Conflict(conflict), CarriedOut: m.config.BalancingPolicies,
	}, Draw: func() uint32 {
		mu.Lock()
		defer mu.Unlock()
		return random.Uint32()
	}}
	return h.Routes(), nil
}
