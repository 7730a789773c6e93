// SPDX-License-Identifier: Apache-2.0

package takeover

// Report is what will become of an installation. Its JSON is stable.
type Report struct {
	// Running says which LBCF controllers run or may begin to; empty if none.
	Running       string         `json:"running"`
	Drivers       []Driver       `json:"drivers"`
	LoadBalancers []LoadBalancer `json:"loadBalancers"`
	Groups        []Group        `json:"groups"`
	Binds         []Group        `json:"binds"`
	Records       []Record       `json:"records"`
	// Findings are objects that LBCF took and that need a look.
	Findings       []Finding    `json:"findings"`
	Definitions    []Difference `json:"definitions"`
	Configurations []Difference `json:"configurations"`
	// HandedOver is when it was recorded that Fairlead has the objects, RFC 3339; empty if it was not.
	HandedOver string `json:"handedOver"`
}

// Driver is a LoadBalancerDriver; its name is namespace/name.
type Driver struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Missing are webhooks that it does not list. They get 10 s; the object stays as it is.
	Missing  []string `json:"missing"`
	Draining bool     `json:"draining"`
}

// LoadBalancer is a LoadBalancer, namespace/name, or one of a Bind, namespace/name/entry.
type LoadBalancer struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// State is created, not-created or deleting.
	State State `json:"state"`
	// Then is what happens to it.
	Then string `json:"then"`
}

// State is how far a load balancer is.
type State string

// The states of load balancers.
const (
	Created    State = "created"
	NotCreated State = "not-created"
	Deleting   State = "deleting"
)

// Group is a BackendGroup or a Bind with its BackendRecords.
type Group struct {
	Name    string `json:"name"`
	Records int    `json:"records"`
	Adopted int    `json:"adopted"`
}

// Record is a BackendRecord.
type Record struct {
	Name         string  `json:"name"`
	Owner        string  `json:"owner"` // kind and name
	LoadBalancer string  `json:"loadBalancer"`
	Driver       string  `json:"driver"`
	Address      string  `json:"address"`
	Verdict      Verdict `json:"verdict"`
	Why          string  `json:"why"`
	// Ours says that Fairlead has written the object: it made the backend, or went on from what LBCF left.
	Ours bool `json:"ours"`
}

// Verdict is what becomes of a BackendRecord.
type Verdict string

// The verdicts.
const (
	// Adopted is registered and unchanged: it becomes a binding, and no driver is called.
	Adopted Verdict = "adopted"
	// Asked is registered and stays, while its driver is asked about a pod that is not ready.
	Asked Verdict = "asked"
	// Ensured is not registered yet, or registered with other parameters: ensureBackend.
	Ensured Verdict = "ensured"
	// Renewed is deregistered with what it was registered with, then registered under what is true now.
	Renewed Verdict = "renewed"
	// Deregistered is not wanted any more: deregisterBackend.
	Deregistered Verdict = "deregistered"
	// Released is not wanted any more and never had an address: it goes without a call.
	Released Verdict = "released"
	// LeftAlone has no finalizer: nobody promised anything for it.
	LeftAlone Verdict = "left-alone"
)

// Verdicts lists all, the harmless ones first.
func Verdicts() []Verdict {
	return []Verdict{Adopted, LeftAlone, Released, Asked, Ensured, Renewed, Deregistered}
}

// Finding is something about an object that people should look at.
type Finding struct {
	Object string `json:"object"` // kind namespace/name
	What   string `json:"what"`
	Then   string `json:"then"` // what Fairlead does about it
}

// Difference is an object of the cluster that is not as Fairlead wants it.
type Difference struct {
	Name    string   `json:"name"`
	Changes []string `json:"changes"` // empty: none
}

// Count tells how many records there are of each verdict.
func (r Report) Count() map[Verdict]int {
	n := map[Verdict]int{}
	for _, one := range r.Records {
		n[one.Verdict]++
	}
	return n
}
