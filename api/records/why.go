// SPDX-License-Identifier: Apache-2.0

package records

// Why is what `fairlead why` answers: what became of Services, or of objects of outside load balancers, and why.
type Why struct {
	Asked      string `json:"asked"`      // as asked for: a Service or an address, or "KIND NAME"
	AnsweredBy string `json:"answeredBy"` // member
	Leader     string `json:"leader"`     // who leads, as far as that member knows; empty: nobody
	Basis      string `json:"basis"`      // sources, record
	// Doubt says why things may stand otherwise; empty where the leader answered by what its sources show.
	Doubt string `json:"doubt"`
	// LastContactMs is how long ago the answering member was in touch with the group; null: never since it started.
	LastContactMs *int64       `json:"lastContactMs"`
	Revision      Revision     `json:"revision"`
	Quarantine    bool         `json:"quarantine"` // nothing is removed or given out
	Sources       []WhySource  `json:"sources"`    // of the leader
	Services      []WhyService `json:"services"`
	Outside       []WhyOutside `json:"outside"` // of a question about outside load balancers
}

// What an answer is made from.
const (
	WhySources = "sources" // what the leader's sources show, and the record
	WhyRecord  = "record"  // the record of the answering member alone
)

// WhySource is a source of the leader.
type WhySource struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"` // what it shows is acted on; else why
	Why    string `json:"why"`
}

// WhyService is one Service. State is as in Service, or ServiceNotOurs.
type WhyService struct {
	Name      string          `json:"name"`
	State     string          `json:"state"`
	Summary   string          `json:"summary"` // a sentence
	Reasons   []Reason        `json:"reasons"` // why it is not served, or lacks an address, or stays though nobody shows it
	Problems  []string        `json:"problems"`
	Addresses []WhyAddress    `json:"addresses"`
	Holds     []WhyHold       `json:"holds"` // mass changes that touch it and wait for an operator
	Pending   []WhyPending    `json:"pending"`
	History   []WhyTransition `json:"history"` // of it, of its routes and of their nodes; oldest first
}

// States of a service that only Why knows.
const (
	ServiceNotOurs = "not-ours" // it is left to others; see reasons
	ServiceNew     = "new"      // a source shows it, the record does not hold it yet
)

// Reason is why something is as it is. The codes are listed in docs/why.md.
type Reason struct {
	Code   string `json:"code"`
	Text   string `json:"text"`
	Remedy string `json:"remedy"` // empty: nothing to mend, or the text says it
}

// WhyAddress is an address that a service has, or shall have.
type WhyAddress struct {
	Address    string   `json:"address"`
	Pool       string   `json:"pool"` // empty: typed by the user
	From       Reason   `json:"from"`
	SharingKey string   `json:"sharingKey"`
	SharedWith []string `json:"sharedWith"`
	Releasing  bool     `json:"releasing"`
	Announced  int      `json:"announced"` // next hops on the wire of at least one member
	// OnSegment says that nodes answer for it on their segment, Holder which one does; empty: none.
	OnSegment bool        `json:"onSegment"`
	Holder    string      `json:"holder"`
	Reasons   []Reason    `json:"reasons"` // what keeps its next hops from being as they are asked for
	Members   []WhyMember `json:"members"`
	Peers     []WhyPeer   `json:"peers"` // that it is to be sent to, by advertisements
	Nodes     []WhyNode   `json:"nodes"` // each once, by name
}

// WhyMember tells how many next hops of an address a member announces, and up to which revision it announced everything.
type WhyMember struct {
	Member    string    `json:"member"`
	Announces int       `json:"announces"`
	UpTo      *Revision `json:"upTo"` // null: it has not said so since it started
}

// WhyPeer is a BGP neighbour of all members, or of nodes. Session is that of the answering member, or how those of nodes stand;
// empty where there is none.
type WhyPeer struct {
	Name      string `json:"name"`
	Address   string `json:"address"`   // empty: behind Interface
	Interface string `json:"interface"` // of each node that peers; empty: at Address
	Session   string `json:"session"`
}

// WhyNode is what became of one node for one address. State is that of a next hop (NextHop), NodePlanned or NodeNone.
type WhyNode struct {
	Node    string `json:"node"`
	Address string `json:"address"` // as next hop; empty: it has none of the family
	State   string `json:"state"`
	Wanted  bool   `json:"wanted"` // as a next hop, by what is planned from now; the record may not be there yet
	// Reason is why it is wanted, or is not.
	Reason
	Failed   bool     `json:"failed"`   // it could not carry the address out
	NoAgent  bool     `json:"noAgent"`  // no agent of it was ever heard of
	Members  []string `json:"members"`  // that announce it
	WaitsFor []string `json:"waitsFor"` // on whom the next state hangs
	Speaker  bool     `json:"speaker"`  // it hangs on the node's own speaker, too
	// Unreached is why it is announced to nobody though speakers have it on all their sessions; empty: it is not so.
	Unreached string    `json:"unreached,omitempty"`
	Since     *Revision `json:"since"` // of the state, or of what is in the node's way; null: not recorded
	Time      string    `json:"time"`  // of since, RFC 3339; empty: not kept
}

// States of a node that is no next hop in the record.
const (
	NodePlanned = "planned" // it is to be one; the leader has yet to commit it
	NodeNone    = "none"
)

// WhyHold is a mass change that waits for an operator's word.
type WhyHold struct {
	ID       string   `json:"id"`
	Of       string   `json:"of"`
	Why      string   `json:"why"`
	Since    Revision `json:"since"`
	Released bool     `json:"released"`
}

// WhyPending is something that is waited for. On is node, member, leader, source, operator or user; name is whose, empty
// where there is one only.
type WhyPending struct {
	On    string    `json:"on"`
	Name  string    `json:"name"`
	What  string    `json:"what"`
	Since *Revision `json:"since"`
}

// WhyTransition is one committed change. Of is what changed: "service", "route PREFIX" or "node NAME".
type WhyTransition struct {
	Revision Revision `json:"revision"`
	Term     uint64   `json:"term"`
	Time     string   `json:"time"`
	Of       string   `json:"of"`
	Actor    string   `json:"actor"`
	Reason   string   `json:"reason"`
	Change   string   `json:"change"`
}
