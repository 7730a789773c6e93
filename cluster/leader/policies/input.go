// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Input is everything that Plan knows. Lists are in order of the objects' names and have each name once.
type Input struct {
	Balancing []*world.BalancingPolicy
	Local     []*world.LocalRedirectPolicy
	Services  []*world.Service
	Nodes     []*world.Node
	Pods      []*world.Pod

	Record *fsm.View
	// MayRemove tells whether the absence of an object may be acted on (design §5); nil means that none may. It is asked
	// only about what Known lists.
	MayRemove func(kind world.Kind, id world.ID) bool
	// Off says that the group does not carry policies out: the record then has none, whatever is there to be seen.
	Off bool
	// Tunnels are how hosts shall reach each other's proxy ports.
	Tunnels fsm.TunnelSettings
	// Now is put on proposals for people to read. Nothing is decided by it.
	Now time.Time
}

// Result is what Plan proposes, in an order in which it may be applied, and what waits.
type Result struct {
	Proposals []fsm.Proposal
	// Waiting tells, in order of names, what is not as its policy asks for, and why.
	Waiting []Explanation
	// AwaitsNodes says that something waits until nodes acknowledge more.
	AwaitsNodes bool
}

// Explanation says why something waits: a stable code for programs and a sentence for people. Kind is the table that it
// is about, Name the record's key there.
type Explanation struct {
	Kind fsm.Table
	Name string
	Code string
	Text string
}

// Codes of fsm.Policy.Pending and of explanations.
const (
	WaitsForFormat   = "format"          // the record cannot hold it yet
	WaitsForEvidence = "evidence"        // its policy is absent, but not surely gone
	WaitsForSupport  = "not-carried-out" // it asks for what nobody does yet
	WaitsForService  = "no-service"      // the Service that it names is not there
	WaitsForIP       = "no-cluster-ip"   // that Service has no address inside the cluster
	WaitsForPort     = "no-port"         // ports of it lead nowhere
	WaitsForWinner   = "conflict"        // an older policy captures the same
	WaitsForBackend  = "no-backend"      // nothing is behind it

	WaitsForProxy     = "no-proxy-address" // no node that it could lead to has one yet
	WaitsForProxyPort = "proxy-port"       // somebody else has a proxy port of it
	WaitsForRange     = "tunnel-range"     // tunnel addresses are somebody else's
	WaitsForUnderlay  = "no-underlay"      // others have no way to the host
	WaitsForNode      = "not-acknowledged" // a node has yet to say that it has a tunnel, or has it no more
)
