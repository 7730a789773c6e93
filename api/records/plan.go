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
	// Calls are those that drivers of outside load balancers would get, in the order in which they would be due.
	Calls []PlanCall `json:"calls"`
	// Left counts objects of outside load balancers among the manifests that are not part of this plan, and LeftWhy says why. With none left
	// LeftWhy says why it is not told what manifests take away that stand for a source.
	Left    int    `json:"left"`
	LeftWhy string `json:"leftWhy"`
	// Unforetold are what no plan foretells, though the group would read it: "BalancingPolicy shop/web". Such an object may change something.
	Unforetold []string `json:"unforetold"`
}

// PlanCall is a call that a driver of outside load balancers would get.
type PlanCall struct {
	Driver       string `json:"driver"`       // namespace/name
	Action       string `json:"action"`       // as in Operation, or judge: which pods stay that are not ready
	LoadBalancer string `json:"loadBalancer"` // the object that means it; empty: the call is about none
	Backend      string `json:"backend"`      // binding, and BackendRecord; empty: the call is about none
	Target       string `json:"target"`       // that backend in words
	Owner        string `json:"owner"`        // the object that the backend is for
	Address      string `json:"address"`      // of the backend; empty: the driver has yet to tell it
	With         string `json:"with"`         // parameters, attributes, lbSpec or pods, "key=value key=value"
}

// PlanChange is what would become of one target: service, address, route, node, pool, peer, advertisement, nodeconfig, driver,
// loadbalancer or backend.
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
