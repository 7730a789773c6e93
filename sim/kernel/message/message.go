// SPDX-License-Identifier: Apache-2.0

package message

import (
	"net/netip"
	"time"
)

// Protocol marks rules and routes that are ours (rtm_protocol).
const Protocol = 83

// SteerTable and NATTable are the nftables tables, of family inet, that are ours.
const (
	SteerTable = "fairlead-steer"
	NATTable   = "fairlead-nat"
)

// Request is one call. One of its fields is set.
type Request struct {
	Dump  *Dump  `json:",omitempty"`
	Rule  *Rule  `json:",omitempty"` // to be added, or deleted with Delete
	Route *Route `json:",omitempty"` // likewise; with Replace it takes the place of the one that is there
	Table []Op   `json:",omitempty"` // one transaction
	Watch bool   `json:",omitempty"` // from now on events are sent, and nothing else is asked
	Flows bool   `json:",omitempty"` // end UDP flows, or mark connections; no account of them is kept
	// Sockets reads or writes the tables of the programs at sockets.
	Sockets *Sockets `json:",omitempty"`
	// Tunnel is about the tunnel to other hosts.
	Tunnel *Tunnel `json:",omitempty"`
	// Delete and Replace say what to do with Rule or Route.
	Delete  bool `json:",omitempty"`
	Replace bool `json:",omitempty"`
}

// Dump asks for all there is.
type Dump struct {
	Ways  []netip.Addr `json:",omitempty"` // how these are reached
	Table string       `json:",omitempty"` // the content of this nftables table
}

// Answer is what became of a Request.
type Answer struct {
	Error  string             `json:",omitempty"` // an errno's name; empty if it was done
	Boot   string             `json:",omitempty"`
	Rules  []Rule             `json:",omitempty"`
	Routes []Route            `json:",omitempty"`
	Links  []Link             `json:",omitempty"`
	Ways   map[netip.Addr]Way `json:",omitempty"`
	Table  *Table             `json:",omitempty"` // nil if there is none
	Event  *Event             `json:",omitempty"`
	// Sockets is what a Read of the tables gives.
	Sockets *Sockets `json:",omitempty"`
	// Cgroups are those of pods that have one, by UID.
	Cgroups map[string]uint64 `json:",omitempty"`
	// Tunnel is what a Read of the tunnel gives, nil for none; MTU is that of ways, in bytes. Changed says that a guard was not as it should be.
	Tunnel  *TunnelLink `json:",omitempty"`
	MTU     int         `json:",omitempty"`
	Changed bool        `json:",omitempty"`
}

// Event tells a watcher of a change, its own included.
type Event struct {
	Rule  *Rule  `json:",omitempty"`
	Route *Route `json:",omitempty"`
	Gone  bool   `json:",omitempty"`
	Table string `json:",omitempty"` // that changed
	// Tunnel says that the tunnel did.
	Tunnel bool `json:",omitempty"`
	Own    bool `json:",omitempty"` // a process of this node did it
}

// Rule is a routing rule of one family.
type Rule struct {
	V6         bool `json:",omitempty"`
	Priority   uint32
	To, From   netip.Prefix // zero: all
	Mark, Mask uint32       `json:",omitempty"`
	Table      uint32
	Protocol   uint8
	Other      string `json:",omitempty"` // what else it asks for; the model matches no packet then
}

// Route is a route.
type Route struct {
	Table    uint32
	To       netip.Prefix
	Local    bool `json:",omitempty"`
	Device   string
	Gateway  netip.Addr // zero: on the link
	Source   netip.Addr
	Metric   uint32 `json:",omitempty"`
	Protocol uint8
	Other    string `json:",omitempty"`
}

// Link is a network interface.
type Link struct {
	Name, Kind string
	ARP        bool
}

// Way is how an address is reached.
type Way struct {
	Device string
	Source netip.Addr
	OnLink bool
}

// Table is an nftables table. Comment stands for rules that the model knows by name only.
type Table struct {
	Comment  string `json:",omitempty"`
	Sets     map[string]Set
	Chains   map[string]Chain
	Elements map[string]map[string]string // by set and key; keys and data are hexadecimal
}

// Set is a named set or map. Key and Data list the types of their parts.
type Set struct {
	Name      string
	Key, Data []Type `json:",omitempty"`
	Verdict   bool   `json:",omitempty"`
	Interval  bool   `json:",omitempty"`
	Dynamic   bool   `json:",omitempty"`
	Size      uint32 `json:",omitempty"`
}

// Type is a part of a key or of data.
type Type int

// Types of parts. Name is an interface's.
const (
	Address4 Type = iota + 1
	Address6
	ProtocolNumber
	PortNumber
	Word
	Name
)

// Bytes is how long a part is: whole registers.
func (t Type) Bytes() int {
	switch t {
	case Address6, Name:
		return 16
	}
	return 4
}

// Chain is a list of rules. Packets enter by one that has a Hook: 1 prerouting, 2 output, 3 postrouting.
type Chain struct {
	Name     string
	Hook     int      `json:",omitempty"`
	Priority int32    `json:",omitempty"`
	Rules    [][]Step `json:",omitempty"`
	Tags     []string `json:",omitempty"` // one for each rule
}

// Step is one step of a rule. What the other fields mean depends on Do.
type Step struct {
	Do     string
	Field  int           `json:",omitempty"` // load
	To     int           `json:",omitempty"` // register that is written; of translate the address's
	From   int           `json:",omitempty"` // register that is read; of translate the port's
	Set    string        `json:",omitempty"`
	Data   string        `json:",omitempty"` // hexadecimal: of put, match, mask
	Number uint32        `json:",omitempty"` // of draw and hash; the value of set-mark
	Bits   uint32        `json:",omitempty"` // of set-mark; of hash how many bytes
	Not    bool          `json:",omitempty"` // of match
	Reset  bool          `json:",omitempty"` // of refuse
	Family byte          `json:",omitempty"` // of translate
	For    time.Duration `json:",omitempty"` // of remember
	Is     string        `json:",omitempty"` // of verdict
}

// Op is a part of a transaction.
type Op struct {
	Do       string // add-table, delete-table, add-set, delete-set, add-chain, flush-chain, delete-chain, add-rules, add-elements, delete-elements
	Table    string
	Comment  string    `json:",omitempty"` // of add-table
	Set      *Set      `json:",omitempty"`
	Chain    *Chain    `json:",omitempty"`
	Elements []Element `json:",omitempty"` // of the set
}

// Element is an element of a set. Key is hexadecimal; Data too, but for verdicts and ends of intervals, which are
// words.
type Element struct{ Set, Key, Data string }

// IntervalEnd is the Data of the first key that is outside again.
const IntervalEnd = "end"
