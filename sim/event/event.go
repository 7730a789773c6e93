// SPDX-License-Identifier: Apache-2.0

package event

import (
	"net/netip"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Event is something that happened.
type Event interface {
	// Lane is the process, machine or model that it happened to.
	Lane() string
}

// Stamped is an event, when it happened, and its number in the run.
type Stamped struct {
	At     time.Duration
	Number uint64
	Event
}

// Processes and machines.
type (
	// Started says that a process began a life. Life counts from 1.
	Started struct {
		Process string
		Life    int
		Release string
		Boot    string // of its machine
	}
	// Ended says that a process is gone: killed, or by itself with a reason.
	Ended struct {
		Process string
		Life    int
		Killed  bool
		Why     string
	}
	// MachineDown and MachineUp frame the time in which a machine has no power.
	MachineDown struct{ Machine string }
	MachineUp   struct{ Machine, Boot string }
	// Wiped says that everything on the disk of a machine is gone, or that it is as it was once.
	Wiped struct {
		Machine string
		Old     bool
	}
	// Link says that what one machine sends to another is held back from now on, or arrives again.
	Link struct {
		From, To string
		Up       bool
	}
	// Log is a line that a process wrote.
	Log struct {
		Process string
		Level   string
		Text    string
		Fields  string // the rest of the line, as key=value
	}
	// Message is something that arrived, or was lost (Arrived is zero then).
	Message struct {
		From, To string
		Port     string
		What     string // "dial", "data", "end", "reset"
		Size     int
		Sent     time.Duration
		Arrived  time.Duration
	}
)

// Faults.
type (
	// FaultBegan and FaultEnded frame a fault. ID tells faults of one run apart. On names every process, machine, switch,
	// balancer, driver or "kubernetes" that cannot be expected to do its work meanwhile: of a cut, the side with fewer
	// members; of a slow link between two, both. Checkers expect everybody else to keep the stated times. Empty: nobody is. A name with a slash
	// ("m2/clock") tells people where the fault is, and excuses nobody.
	FaultBegan struct {
		ID    int
		Fault string
		On    []string
		Text  string // for people
	}
	FaultEnded struct {
		ID    int
		Fault string
		On    []string
	}
	// Calm says that the last fault has ended: from now on L1 to L3 count.
	Calm struct{}
)

// The group and its record.
type (
	// Applied says that a member applied one log entry. Entry is what the log holds; Digest is of the record after
	// it. Members report each entry by itself.
	Applied struct {
		Process string
		Life    int
		Index   uint64
		Term    uint64 // of the entry: it is kept in histories
		Entry   []byte
		Digest  string
	}
	// Restored says that a member took a snapshot for its record. Snapshot is all of it where the record was not what
	// the log had led to (a restore or recover from a backup), and may be left out otherwise.
	Restored struct {
		Process  string
		Life     int
		Index    uint64
		Digest   string
		Snapshot []byte
	}
	// Leading says that a member began (or ended) to work as leader of a term.
	Leading struct {
		Process string
		Life    int
		Term    uint64
		On      bool
	}
	// Sends says that a leader sends a member a snapshot, which ends at Index.
	Sends struct {
		Process string
		Life    int
		To      string
		Index   uint64
	}
	// Holds says how far the log or the newest snapshot goes that a member found in its folder as it started.
	Holds struct {
		Process string
		Life    int
		Last    uint64
	}
	// Answered says that member From gave Process its vote, or followed it (Does is "votes for" or "follows"), as it had been Asked to. Of what follows it
	// is the first time since the other one did not answer.
	Answered struct {
		Process    string
		Life       int
		From, Does string
		Asked      time.Duration
	}
	// Judged says what an operator is told of a member's health by the one that leads, which was asked for it since Asked.
	Judged struct {
		Member, Leader string
		Healthy        bool
		Why            string
		Asked          time.Duration
	}
	// Contact says how a member stands with the group, when that changes: in touch with a quorum or not.
	Contact struct {
		Process string
		Life    int
		Quorum  bool
		Commit  uint64
		Applied uint64
	}
)

// Calls of clients to the API of the group.
type (
	// CallBegan and CallEnded frame one call; ID is unique in the run. Outcome is "ok", "refused" (surely nothing
	// happened, and nothing will) or "unknown". Index is that of the entry which holds the command, as its outcome's
	// revision tells: that of the answer as a whole may be a later one. Epoch is of that revision, 0 where the answer names none.
	CallBegan struct {
		Client string
		ID     int
		Do     string // what: "put" or linearizable "get" of a register (check.Put), or a command's name
		Key    string
		Value  string
		To     string // the member asked
	}
	CallEnded struct {
		Client  string
		ID      int
		Outcome string
		Value   string // what a read returned
		Epoch   uint64
		Index   uint64
		Why     string
	}
)

// Switches.
type (
	// Session says that a BGP session came up or went down.
	Session struct {
		Switch, Member string
		Up             bool
		Why            string
	}
	// Forwarding is how a switch forwards an address from now on: the ECMP set. Empty: not at all. Paths are all that it
	// holds for the prefix, used or not.
	Forwarding struct {
		Switch   string
		Prefix   netip.Prefix
		NextHops []netip.Addr
		Paths    []Path
	}
	// Path is one path at a switch.
	Path struct {
		Member    string
		NextHop   netip.Addr
		MED       uint32
		LocalPref uint32
		Stale     bool // kept by graceful restart
		LongLived bool // kept by long-lived graceful restart: ranks last
		Best      bool // in the ECMP set
	}
	// Refused says that a switch, a kernel, the API server or an outside load balancer refused what it was sent,
	// because no real one would take it. It is always a failure of the run.
	Refused struct {
		Model, By string
		What, Why string
	}
)

// Speakers.
type (
	// Speaking says that the process of a member's BGP speaker runs from now on, or has ended. Without Why the member wanted so, or ended as well.
	Speaking struct {
		Process string
		Life    int
		On      bool
		Why     string
	}
)

// Certificates, in worlds in which some are revoked.
type (
	// Certified says what a process shows in handshakes from now on, as its machine was given it.
	Certified struct {
		Process string
		Serial  string
		Issued  int // as it says itself, seconds since 1970
	}
	// Barred says that a process refused a peer for its certificate, or ended what was open with it.
	Barred struct {
		Process string
		Life    int
		Peer    string
		Serial  string
	}
)

// Nodes.
type (
	// Steered is what the kernel of a node steers from now on: addresses for which rules, routes and translation are
	// whole. It is empty after a reboot. By is "hand" when somebody else than the agent changed it.
	Steered struct {
		Node      string
		Boot      string
		Addresses []netip.Addr
		By        string
	}
	// Foreign says that a change was made to something without our mark, in a kernel, a switch, a load balancer or
	// Kubernetes, by one of our processes. It is always a failure of the run (S11).
	Foreign struct {
		Where, By string
		What      string
	}
	// Resolves says what programs of a node get that dial a place, from now on: an address, port and protocol ("TCP", "UDP"), as a row of
	// the tables at its sockets has it; without a row There is false. An address of all ones is every address of every node. Beyond is
	// what calls get that are beyond a limit, where Limited says that there is one, or that the rule leaves alone.
	Resolves struct {
		Node, Boot string
		Address    netip.Addr
		Port       uint16
		Protocol   string
		There      bool
		Way        Way
		Limited    bool
		Beyond     Way
	}
	// Spares says which pods have sockets on a node, as "namespace/name", and which of them rules leave alone: "namespace/name number".
	Spares struct {
		Node, Boot string
		Pods, Own  []string
	}
	// Way is where a call goes. Verdict is "use", "refuse", "unreachable", or "pass" for wherever it goes without programs; Rule is the number
	// of who says so, and Backends, of "use", are those that it may get, "address:port", each as often as it has turns. It Spares those that the
	// rule leaves alone.
	Way struct {
		Verdict  string
		Rule     uint32
		Backends []string
		Spares   bool
	}
	// Programs says whether programs work at the sockets of a node, and which addresses they take for nodes'.
	Programs struct {
		Node, Boot string
		Attached   bool
		Nodes      []netip.Addr
	}
	// Tunnel says what the tunnel of a node to other hosts is like from now on: the addresses that it takes packets for, by which hardware
	// address, whereto it sends those for other addresses, and from which hosts it takes any. Without Addresses it takes none. By is "hand"
	// when somebody else than the agent changed it.
	Tunnel struct {
		Node, Boot string
		MAC        string
		Addresses  []netip.Addr
		Ways       []TunnelWay
		Peers      []netip.Addr
		By         string
	}
	// TunnelWay says that packets to an address are sent to the host at another one, for whoever there has a hardware address.
	TunnelWay struct {
		To, By netip.Addr
		MAC    string
	}
	// Proxies says which endpoints, "address:port", connections get that come to a port at an address of a node's tunnel, from now on; none,
	// where There is false, since nobody is at the port.
	Proxies struct {
		Node, Boot string
		Address    netip.Addr
		Port       uint16
		Protocol   string
		There      bool
		To         []string
		By         string
	}
	// Answers says at which ports a pod takes connections from now on, at its address; at none once it is gone, or deaf.
	Answers struct {
		Pod, Node string // the pod by "namespace/name"
		Address   netip.Addr
		Ports     []string
	}
	// Acted says that an agent carried out a state of this revision.
	Acted struct {
		Process  string
		Life     int
		Revision fsm.Revision
	}
)

// Segments that nodes are in.
type (
	// Asks says that a host asked a segment who has an address.
	Asks struct {
		Segment string
		Address netip.Addr
	}
	// Claim says that a node told a segment that an address other than its own is at it: as the answer to who Asked, or
	// unasked.
	Claim struct {
		Node, Segment string
		Address       netip.Addr
		Asked         bool
	}
	// Carrier says how the link of a node to a segment is from now on: whether it has a carrier, and whether what is sent
	// by it arrives.
	Carrier struct {
		Node, Segment string
		Up, Passes    bool
	}
)

// Outside load balancers and their drivers.
type (
	// Drive is one step of a call to a driver. Phase is "sent" (the request left the member), "effect" (it took effect
	// on the balancer; published before the Entry that it made), "answered" (an answer left the driver), "heard" (the
	// member got it, or gave up: "lost"). Attempt and what it is about tell calls apart; Call may be 0.
	Drive struct {
		Driver   string
		Call     int
		Process  string
		Phase    string
		Action   string // as fsm.Action names it
		Balancer string
		Address  string
		Binding  string // name in the record; of a creation, and of a deletion before anybody knows what was created, that of the object
		Attempt  fsm.Revision
		Result   string // of "answered" and "heard": "succeeded", "failed", "running", "lost"
	}
	// Entry is a change of what a balancer holds. Owner is "fairlead" or "foreign"; By is "driver", "hand" or, for
	// another controller, "rival".
	Entry struct {
		Balancer string
		Address  string
		Owner    string
		Present  bool
		By       string
	}
)

// Kubernetes.
type (
	// Object is a change of an object in the API server, by whomever. Fields is a short account for people.
	Object struct {
		Kind, Namespace, Name string
		UID                   string
		Version               uint64
		By                    string // "user", "kubelet", or one of our processes
		Verb                  string // "create", "update", "delete", "status"
		Fields                string
		JSON                  []byte // as it is stored from now on; of a delete, as it was last
	}
	// Viewed says what kind of answer a process got from the API server, when it was other than the plain truth:
	// "stale", "empty", "partial", "error", "gone".
	Viewed struct {
		Process string
		Kind    string
		How     string
	}
)

// Traffic.
type (
	// Flow is one request of a client to an address, and where it ended. Wanted says whether it should have been
	// served by what users had asked for at that time.
	Flow struct {
		Client  string
		Address netip.Addr
		Port    uint16
		Switch  string
		NextHop netip.Addr
		Node    string
		Behind  string // the node of the pod that it was passed on to; empty when it came to none
		Pod     string // "namespace/name"; empty when it was not served
		Served  bool
		Wanted  bool
		Why     string // it was not served
	}
)
