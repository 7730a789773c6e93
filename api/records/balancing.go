// SPDX-License-Identifier: Apache-2.0

package records

// Driver is a program that looks after outside load balancers; name is "namespace/name".
type Driver struct {
	Name          string           `json:"name"`
	UID           string           `json:"uid"`
	URL           string           `json:"url"`
	TimeoutsMs    map[string]int64 `json:"timeoutsMs"` // by webhook; what is missing has the default
	AcceptsDryRun bool             `json:"acceptsDryRun"`
	Draining      bool             `json:"draining"` // it takes no new objects
	Secret        string           `json:"secret"`   // name of the Secret with what it is called with
	Concurrent    uint32           `json:"concurrent"`
	SettleMs      int64            `json:"settleMs"` // this and concurrent: 0 for the default
	LoadBalancers int              `json:"loadBalancers"`
}

// Ensure says whether a driver is asked again although it confirmed.
type Ensure struct {
	Policy   string `json:"policy"` // as its object has it
	PeriodMs int64  `json:"periodMs"`
}

// LoadBalancer is an object that means an outside load balancer; name is
// LoadBalancer/namespace/name/uid or Bind/namespace/name/uid/entry.
type LoadBalancer struct {
	Name       string            `json:"name"`
	Driver     string            `json:"driver"`
	Info       map[string]string `json:"info"`
	Attributes map[string]string `json:"attributes"`
	Ensured    bool              `json:"ensured"`                               // the driver confirmed it as it shall be
	State      string            `json:"state" oneof:"creating,ready,deleting"` // creating, ready or deleting
	Identity   string            `json:"identity"`                              // driver and info; objects with the same one mean one balancer; empty until created
	Spec       map[string]string `json:"spec"`
	UID        string            `json:"uid"`
	Ensure     Ensure            `json:"ensure"`
	Synced     map[string]string `json:"synced"` // attributes that the driver confirmed last
	Generation uint64            `json:"generation"`
	Asked      bool              `json:"asked"`    // a call has gone out: only a confirmation ends it
	Attempts   uint32            `json:"attempts"` // that failed in a row
	Reason     string            `json:"reason"`   // of the last call after which there is more to do
	Message    string            `json:"message"`  // of the driver, when it last confirmed or refused
	Bindings   int               `json:"bindings"`
	Subject    string            `json:"subject"` // name of its line of operations
}

// Backend is what a binding binds, in the words of Kubernetes.
type Backend struct {
	Kind     string `json:"kind"` // Pod, Service or Static
	Name     string `json:"name"`
	UID      string `json:"uid"`
	Port     uint32 `json:"port"`
	Protocol string `json:"protocol"`
	NodePort uint32 `json:"nodePort"`
	Node     string `json:"node"`
	Target   string `json:"target"` // what its address was made from
}

// Binding is one backend on one outside load balancer.
type Binding struct {
	Name       string            `json:"name"`
	Balancer   string            `json:"balancer"`
	Owner      string            `json:"owner"` // kind/namespace/name/uid
	Address    string            `json:"address"`
	Parameters map[string]string `json:"parameters"`
	// State is pending, addressing, ensuring, bound, draining or deregistering.
	State      string            `json:"state" oneof:"pending,addressing,ensuring,bound,draining,deregistering"`
	Generation uint64            `json:"generation"`
	Asked      bool              `json:"asked"`    // an ensure has gone out: only a confirmation ends it
	Attempts   uint32            `json:"attempts"` // that failed in the present state
	Reason     string            `json:"reason"`
	Returned   map[string]string `json:"returned"`
	Subject    string            `json:"subject"` // name of its line of operations
	Identity   string            `json:"identity"`
	UID        string            `json:"uid"` // the driver knows its calls by it
	Backend    Backend           `json:"backend"`
	Attributes map[string]string `json:"attributes"` // of the balancer
	Ensure     Ensure            `json:"ensure"`
	Registered bool              `json:"registered"` // the driver's last answer to an ensure: confirmed, or refused
	Message    string            `json:"message"`    // with that answer
}

// Operation is the line of calls about one subject; name is the subject.
type Operation struct {
	Name       string    `json:"name"`
	Action     string    `json:"action" oneof:"address,ensure,deregister,ensure-balancer,delete-balancer,create-balancer"` // address, ensure, deregister, ensure-balancer, delete-balancer, create-balancer
	Binding    string    `json:"binding"`
	Balancer   string    `json:"balancer"`
	Attempt    Revision  `json:"attempt"`
	Open       bool      `json:"open"`
	DeadlineMs int64     `json:"deadlineMs"`
	Generation uint64    `json:"generation"`
	Unsettled  *Revision `json:"unsettled"` // newest call of unknown outcome; null if none
	// NotBefore is when its driver wants to hear of the same again at the earliest; empty: it did not say.
	NotBefore string `json:"notBefore"`
}

// Lease is a node's right to answer for an address; name is the address.
type Lease struct {
	Name   string   `json:"name"`
	Holder string   `json:"holder"`
	Fence  Revision `json:"fence"`
	TermMs int64    `json:"termMs"`
}
