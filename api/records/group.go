// SPDX-License-Identifier: Apache-2.0

package records

// Hold is a mass change that waits for an operator's word; name is its id.
type Hold struct {
	Name     string   `json:"name"`
	Of       string   `json:"of"` // kind of the objects
	Subjects []string `json:"subjects"`
	Why      string   `json:"why"`
	Since    Revision `json:"since"`
	Released bool     `json:"released"`
}

// Drain is an operator's word that new flows shall go past a node or a Service, or that the group shall do without a member; name
// is KIND/NAME of what is drained.
type Drain struct {
	Name    string      `json:"name"`
	Of      string      `json:"of" oneof:"node,service,member"` // node, service or member
	Subject string      `json:"subject"`
	Since   Revision    `json:"since"`
	Done    bool        `json:"done"` // no switch leads to it any more; a member neither leads nor has BGP sessions
	Left    []DrainLeft `json:"left"` // in order of prefix and node
	// Flows are the connections that still come in by a node that is drained. Empty of other drains, and while the node's agent
	// has told nothing.
	Flows []DrainFlows `json:"flows"`
}

// DrainFlows is what a node counted of the connections that come in to service addresses by it, from outside the cluster.
type DrainFlows struct {
	Node  string `json:"node"`
	Open  uint64 `json:"open"`
	Busy  uint64 `json:"busy"`  // of those, the ones that a packet was seen of in the last 30 s
	AgeMs int64  `json:"ageMs"` // since they were counted
	Why   string `json:"why"`   // why they could not be counted; the numbers say nothing then
}

// DrainLeft is a next hop that a drain has not taken away yet, in a state of next hops (NextHop); or what a member that is drained
// still does: leading, announcing, or ending (its BGP sessions), without prefix, node and address.
type DrainLeft struct {
	Prefix   string   `json:"prefix"`
	Node     string   `json:"node"`
	Address  string   `json:"address"`
	State    string   `json:"state"`
	WaitsFor []string `json:"waitsFor"` // members that have not withdrawn it, or that a switch may hold it of
	Why      string   `json:"why"`
}

// Move is an operator's word that the traffic of a Service shall come in by one node; name is the Service's.
type Move struct {
	Name   string      `json:"name"`
	Node   string      `json:"node"`
	Since  Revision    `json:"since"`
	Time   string      `json:"time"` // of the word; RFC 3339
	By     string      `json:"by"`   // who said it
	Reason string      `json:"reason"`
	Done   bool        `json:"done"` // every address leads to the node, and no switch leads elsewhere; at layer 2 the node answers for it
	Left   []DrainLeft `json:"left"` // what keeps it from that, in order of prefix and node; its state may also be lease, of who answers at layer 2
}

// Member is what one Raft server last said of itself; name is its server id. It can also be asked for by the
// member's name.
type Member struct {
	Name      string    `json:"name"`
	Member    string    `json:"member"`
	Raft      string    `json:"raft"` // host:port
	API       string    `json:"api"`  // host:port
	Format    uint32    `json:"format"`
	Version   string    `json:"version"`
	Announced *Revision `json:"announced"` // on all its BGP sessions; null if nothing
	// Away is for how long leaders have not heard it, and after how long no withdrawal waits for it any more ("5m0s of 10m31s"); told
	// about once a minute, and empty where it answers.
	Away string `json:"away"`
}

// Source is where objects come from, and up to where it was acted on.
type Source struct {
	Name     string            `json:"name"`
	Cluster  string            `json:"cluster"`  // UID of kube-system; empty where the source has none
	Versions map[string]uint64 `json:"versions"` // newest resourceVersion acted on, by kind
	Rewind   bool              `json:"rewind"`   // an operator accepts the next view, however old
	RanBack  string            `json:"ranBack"`  // why nothing of it is acted on until an operator does; empty where it has not run back
}

// Group is the identity and the committed settings of the controller group; its name is group.
type Group struct {
	Name       string    `json:"name"`
	ID         string    `json:"id"`
	Epoch      uint64    `json:"epoch"`
	Format     uint32    `json:"format"`
	Settings   Settings  `json:"settings"`
	Quarantine *Revision `json:"quarantine"` // since when nothing is removed or given away; null if all is well
	Checkpoint uint64    `json:"checkpoint"`
	Digest     string    `json:"digest"` // of the whole record at the answer's revision
}

// Settings are committed, so that every member bounds its copy alike. 0 means the default.
type Settings struct {
	HistoryLimit uint32 `json:"historyLimit"`
	GraveLimit   uint32 `json:"graveLimit"`
	Unsteered    bool   `json:"unsteered"`
}
