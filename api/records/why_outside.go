// SPDX-License-Identifier: Apache-2.0

package records

// WhyOutside is one object of outside load balancers.
type WhyOutside struct {
	Kind    string   `json:"kind"` // BackendGroup, Bind, LoadBalancer or BackendRecord
	Name    string   `json:"name"`
	Driver  string   `json:"driver"`  // of a load balancer or a backend
	State   string   `json:"state"`   // of a load balancer or a backend, as in their documents; else empty
	Summary string   `json:"summary"` // a sentence
	Reasons []Reason `json:"reasons"` // why it is not as it is asked for
	// Call is the next one about a load balancer itself, null where none is due.
	Call         *WhyCall        `json:"call"`
	Backends     []WhyBackend    `json:"backends"`     // of it, or on it
	Unregistered []WhyAbsent     `json:"unregistered"` // pods of a group or Bind that are not registered, and why
	History      []WhyTransition `json:"history"`      // of it and of its backends, oldest first
}

// WhyBackend is one backend on one load balancer.
type WhyBackend struct {
	Name         string   `json:"name"`   // of the binding, and of its BackendRecord
	Target       string   `json:"target"` // in words
	LoadBalancer string   `json:"loadBalancer"`
	Owner        string   `json:"owner"`
	Driver       string   `json:"driver"`
	Address      string   `json:"address"` // empty: the driver has yet to tell it
	State        string   `json:"state"`
	Registered   bool     `json:"registered"` // by the driver's last answer to an ensure
	Call         *WhyCall `json:"call"`       // the next one, null where none is due
}

// WhyCall is a call that a driver is to get.
type WhyCall struct {
	Action   string `json:"action"`   // as in Operation; empty: an attempt of an earlier leader is waited for
	Progress string `json:"progress"` // CallUnderWay, CallQueued, CallDue or CallUnknown
	// DueInMs is how long until it goes out, of CallDue.
	DueInMs   int64  `json:"dueInMs"`
	NotBefore string `json:"notBefore"` // when its driver wants to hear of it again at the earliest; empty: it did not say
	Attempts  uint32 `json:"attempts"`  // that failed in a row
	Last      string `json:"last"`      // what came of the last one; empty: nothing to tell
	Unsettled bool   `json:"unsettled"` // an earlier call has no known outcome, and may still take effect
}

// How far a call is.
const (
	CallUnderWay = "under-way" // the driver has it, or is about to get it
	CallQueued   = "queued"    // it waits for its turn at the driver
	CallDue      = "due"       // after a while
	CallUnknown  = "unknown"   // only the leader knows, and it did not say
)

// WhyAbsent is a pod that is not registered.
type WhyAbsent struct {
	Pod string `json:"pod"`
	Reason
}
