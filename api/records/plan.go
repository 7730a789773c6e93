// SPDX-License-Identifier: Apache-2.0

package records

// Plan is what `fairlead plan` answers: what would change if manifests were applied.
type Plan struct {
	AnsweredBy string       `json:"answeredBy"` // member
	Revision   Revision     `json:"revision"`   // from which it was planned
	InPlaceOf  string       `json:"inPlaceOf"`  // source; empty: the manifests came on top of all sources
	Changes    []PlanChange `json:"changes"`
	Held       []PlanHold   `json:"held"`     // mass changes that would wait for an operator; not among the changes
	Waiting    []PlanWait   `json:"waiting"`  // what would wait then, and does not now
	Problems   []string     `json:"problems"` // of the manifests: what is refused, and what is doubtful
	// Left counts objects of outside load balancers among the manifests: they are not part of this plan.
	Left int `json:"left"`
}

// PlanChange is what would become of one target: service, address, route, node, pool, peer, advertisement or nodeconfig.
type PlanChange struct {
	Target string `json:"target"`
	Name   string `json:"name"`
	What   string `json:"what"`
}

// PlanHold is a mass change that the guard would put before an operator.
type PlanHold struct {
	Of       string   `json:"of"`
	Subjects []string `json:"subjects"`
	Why      string   `json:"why"`
}

// PlanWait is something that would not be as asked for. The codes are listed in docs/why.md.
type PlanWait struct {
	Kind string `json:"kind"` // services, routes, pools ...
	Name string `json:"name"`
	Reason
}

// PlanMaxBytes is how large the manifests of one request may be, names included.
const PlanMaxBytes = 512 << 10
