// SPDX-License-Identifier: Apache-2.0

package records

// Policy is a policy of client-side balancing, as far as the record knows what it chooses; name is kind and name of the object.
type Policy struct {
	Name    string   `json:"name"`
	UID     string   `json:"uid"`
	Number  uint32   `json:"number"`  // its id on hosts and in events
	Created *string  `json:"created"` // RFC 3339; of two of a kind at one place the older one counts. Null if unknown
	Pending *Pending `json:"pending"` // why it is not carried out as it asks
	// EveryNode or Nodes say on which nodes it is effective, Outside that it is on hosts that are none.
	EveryNode bool     `json:"everyNode"`
	Nodes     []string `json:"nodes"`
	Outside   bool     `json:"outside"`
	// Service is the one whose ClusterIPs are captured; empty for an address of its own.
	Service  string          `json:"service"`
	Captures []Capture       `json:"captures"`
	Mode     string          `json:"mode" oneof:"podEndpoint,hostPort,nodeProxy,address,local"` // podEndpoint, hostPort, nodeProxy, address, local
	Backends []PolicyBackend `json:"backends"`
	Probe    *Probe          `json:"probe"` // of listed addresses; null for none
	// Verdicts are what most of the nodes that probe think, as of when that changed last; of what is not there nobody knows. Bad are the
	// places, address:port/protocol, that get no new connections for that; FailsOpen are captured ones where all are bad, and used.
	Verdicts    []Verdict `json:"verdicts"`
	Bad         []string  `json:"bad"`
	FailsOpen   []string  `json:"failsOpen"`
	SpareOwn    bool      `json:"spareOwn"`
	FallThrough bool      `json:"fallThrough"`
	Version     uint64    `json:"version"`
}

// Capture is a place that programs dial, and the port of backends that it becomes.
type Capture struct {
	Address  string `json:"address"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
	Target   uint16 `json:"target"`
}

// PolicyBackend is an address that connections get, and the pod that is behind it, if any.
type PolicyBackend struct {
	Address string `json:"address"`
	Node    string `json:"node"`
	Pod     string `json:"pod"`
	Ready   bool   `json:"ready"`
}

// Verdict is what is thought of an address and a target port.
type Verdict struct {
	Address  string `json:"address"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
	Healthy  bool   `json:"healthy"`
	Say      uint32 `json:"say"` // how many nodes said so
	Of       uint32 `json:"of"`  // of so many that probe
}

// Probe is how an address is checked.
type Probe struct {
	Type       string   `json:"type"`
	Port       uint16   `json:"port"` // 0 for each target port
	Path       string   `json:"path"`
	Statuses   []uint32 `json:"statuses"`
	IntervalMs int64    `json:"intervalMs"`
	TimeoutMs  int64    `json:"timeoutMs"`
	Healthy    uint32   `json:"healthy"` // so many answers in a row change what is thought of an address
	Unhealthy  uint32   `json:"unhealthy"`
}
