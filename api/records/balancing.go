// SPDX-License-Identifier: Apache-2.0

package records

// LoadBalancer is an outside load balancer that a driver looks after; name is its canonical identity.
type LoadBalancer struct {
	Name       string            `json:"name"`
	Driver     string            `json:"driver"`
	Info       map[string]string `json:"info"`
	Attributes map[string]string `json:"attributes"`
	Ensured    bool              `json:"ensured"` // the driver confirmed it as it shall be
}

// Binding is one backend on one outside load balancer.
type Binding struct {
	Name       string            `json:"name"`
	Balancer   string            `json:"balancer"`
	Owner      string            `json:"owner"` // kind/namespace/name/uid
	Address    string            `json:"address"`
	Parameters map[string]string `json:"parameters"`
	// State is pending, addressing, ensuring, bound, draining or deregistering.
	State      string            `json:"state"`
	Generation uint64            `json:"generation"`
	Asked      bool              `json:"asked"`    // an ensure has gone out: only a confirmation ends it
	Attempts   uint32            `json:"attempts"` // that failed in the present state
	Reason     string            `json:"reason"`
	Returned   map[string]string `json:"returned"`
	Subject    string            `json:"subject"` // name of its line of operations
}

// Operation is the line of calls about one subject; name is the subject.
type Operation struct {
	Name       string    `json:"name"`
	Action     string    `json:"action"` // address, ensure, deregister, ensure-balancer, delete-balancer
	Binding    string    `json:"binding"`
	Balancer   string    `json:"balancer"`
	Attempt    Revision  `json:"attempt"`
	Open       bool      `json:"open"`
	DeadlineMs int64     `json:"deadlineMs"`
	Generation uint64    `json:"generation"`
	Unsettled  *Revision `json:"unsettled"` // newest call of unknown outcome; null if none
}

// Lease is a node's right to answer for an address; name is the address.
type Lease struct {
	Name   string   `json:"name"`
	Holder string   `json:"holder"`
	Fence  Revision `json:"fence"`
	TermMs int64    `json:"termMs"`
}

// Policy is a balancing policy that agents carry out.
type Policy struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Version uint64 `json:"version"`
	Spec    []byte `json:"spec"` // its canonical form, base64
}
