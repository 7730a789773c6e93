// SPDX-License-Identifier: Apache-2.0

// Package start is what a simulated process is told when it starts: its only argument, as JSON.
package start

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"
)

// LogFile is the log in a member's data folder.
const LogFile = "raft.db"

// Ports of the machines of a world.
const (
	RaftPort       = "7444"
	APIPort        = "7443"
	KubernetesPort = "6443"
	DriverPort     = "8080"
	// ProbePort is where nobody listens: whoever is asked there and lives says so.
	ProbePort = "10250"
)

// SpeakerPort is where a member takes each connection for a signal that kills its speaker's process.
const SpeakerPort = "kill-speaker"

// CertificatePort is where a member shows its certificate to whoever is about to connect.
const CertificatePort = "certificate"

// Kubernetes is the machine of the API server.
const Kubernetes = "kubernetes"

// ListedPrefix is how the names of machines begin that are outside the cluster, at addresses that policies list; the address follows.
const ListedPrefix = "listed-"

// PodPrefix is how the names begin by which the network knows pods that take connections; the address follows.
const PodPrefix = "pod-"

// DataDir is a process's folder on the disk of its machine.
const DataDir = "/data"

// RunDir is in the memory of a machine: a boot empties it, and the end of a process does not.
const RunDir = "/run"

// DrainDelay is how long agents keep the rules of an address that left: shorter than the default, so that a run sees
// them go.
const DrainDelay = 10 * time.Second

// Tunnels4 and Tunnels6 are what hosts have addresses of in their tunnels to each other, where they have any: few, so that they are given again soon.
var (
	Tunnels4 = netip.MustParsePrefix("10.250.0.0/29")
	Tunnels6 = netip.MustParsePrefix("fd00:250::/125")
)

// MostTunnels is for how many hosts these have addresses.
const MostTunnels = 6

// What the record says of a member by the id of a policy, which begins with one of these, and ends with the member's name: from that entry on its
// copy is another one, or a bit of it flips in its memory, of which its digest does not tell. That befalls who applies it within StrayWithin of when
// it was asked for, and not who starts later and applies it once more.
const (
	OtherRecord = "other-record-"
	FlippedBit  = "flipped-bit-"
	StrayWithin = 5 * time.Second
)

// Releases that a process may be of. Older knows format 1 of the record only (see sim/mutants/releases).
const (
	Current = "current"
	Older   = "older"
)

// Process is a process's argument.
type Process struct {
	// Role is "member", "agent", or "recover" for `fairlead raft recover` on a member's folder.
	Role string `json:"role"`
	// Name is the member's or the node's, and the machine's.
	Name string `json:"name"`
	// Release is what the process says that it is, Current or Older.
	Release string `json:"release"`
	// Members are the first members of the group; Token founds it, and an empty one joins.
	Members []string `json:"members"`
	Token   string   `json:"token,omitempty"`
	// Nodes are those with names of their own: n1, n2 and so on are nodes in any case.
	Nodes []string `json:"nodes,omitempty"`
	// Mutant is the planted bug that is on, in a guest that was built with them.
	Mutant string `json:"mutant,omitempty"`
	// Debug has the process log everything.
	Debug bool `json:"debug,omitempty"`

	// Of a member.
	ASN        uint32    `json:"asn,omitempty"`        // 0: no BGP
	Kubernetes bool      `json:"kubernetes,omitempty"` // it reads the cluster
	Drivers    []Outside `json:"drivers,omitempty"`
	// Shown has outside load balancers be asked for by LBCF's objects, and shown in them.
	Shown  bool   `json:"shown,omitempty"`
	Raft   Raft   `json:"raft,omitzero"`
	Tuning Tuning `json:"tuning,omitzero"`

	// Segments has an agent answer for addresses on the segments that its machine is in. Uptime is then what the machine's
	// clock shows, which goes on from process to process.
	Segments bool          `json:"segments,omitempty"`
	Uptime   time.Duration `json:"uptime,omitempty"`

	// Sockets is what of balancing at sockets there is.
	Sockets Sockets `json:"sockets,omitzero"`

	// Address is the machine's own.
	Address netip.Addr `json:"address"`
	// Certificate is what the machine shows; nil in worlds in which none is revoked.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Certificate is what can be revoked of a machine's.
type Certificate struct {
	Serial string `json:"serial"` // lower-case hexadecimal
	Issued int64  `json:"issued"` // as it says itself, seconds since 1970
}

// Sockets is what is served at the sockets of nodes; with any of it agents have programs there.
type Sockets struct {
	Policies   bool `json:"policies,omitempty"`   // members have balancingPolicies
	ClusterIPs bool `json:"clusterIPs,omitempty"` // and so on
	NodePorts  bool `json:"nodePorts,omitempty"`
	// Tunnels has members give hosts tunnels, and agents make them.
	Tunnels bool `json:"tunnels,omitempty"`
	// Probes has something be at the addresses that policies list, which may be probed.
	Probes bool `json:"probes,omitempty"`
	// Room is for how many places tables have room, with some slots for each; 0: for all that a world asks for.
	Room int `json:"room,omitempty"`
}

// Any tells whether anything is served.
func (s Sockets) Any() bool { return s.Policies || s.ClusterIPs || s.NodePorts }

// Raft is what a world may want otherwise than a configuration's defaults.
type Raft struct {
	SnapshotThreshold uint64        `json:"snapshotThreshold,omitempty"`
	SnapshotInterval  time.Duration `json:"snapshotInterval,omitempty"`
	TrailingLogs      uint64        `json:"trailingLogs,omitempty"`
}

// Tuning is how members deal with drivers: a world that is over in a minute must see them come back. Zero fields take
// the product's defaults.
type Tuning struct {
	// RetryFloor, RetryCap and Drift are those of leader.Timing.
	RetryFloor time.Duration `json:"retryFloor,omitempty"`
	RetryCap   time.Duration `json:"retryCap,omitempty"`
	Drift      time.Duration `json:"drift,omitempty"`
	// Timeout and Settle are those of leader.Terms.
	Timeout time.Duration `json:"timeout,omitempty"`
	Settle  time.Duration `json:"settle,omitempty"`
}

// Outside is a driver of outside load balancers: its machine is Driver of its Name, and the record knows it as Known.
type Outside struct {
	Name  string `json:"name"`
	Known string `json:"known"`
}

// Driver is the machine of a driver of outside load balancers.
func Driver(name string) string { return "driver-" + name }

// Argument encodes it.
func (p Process) Argument() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("encode the start of %s: %v", p.Name, err)) // plain values always can be
	}
	return string(b)
}

// Parse reads a process's argument.
func Parse(argument string) (p Process, err error) {
	if err := json.Unmarshal([]byte(argument), &p); err != nil {
		return p, fmt.Errorf("start of a simulated process: %w", err)
	}
	return p, nil
}
