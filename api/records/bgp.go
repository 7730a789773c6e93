// SPDX-License-Identifier: Apache-2.0

package records

// Peer is a BGP neighbour of every member, or of nodes. Defaults are filled in where they are the record's; a time of 0 is
// left to the speaker.
type Peer struct {
	Name            string    `json:"name"`
	Address         string    `json:"address"`   // empty: behind Interface
	Interface       string    `json:"interface"` // of each node that peers; empty: at Address
	Port            uint16    `json:"port"`
	ASN             uint32    `json:"asn"`
	LocalASN        uint32    `json:"localASN"`
	Passive         bool      `json:"passive"`
	MultihopTTL     uint8     `json:"multihopTTL"` // 0: directly connected
	TTLSecurity     uint8     `json:"ttlSecurity"` // hops that it may be away (RFC 5082); 0: any
	SendMax         uint8     `json:"sendMax"`     // paths per prefix
	Families        []string  `json:"families"`    // ipv4, ipv6
	HoldTimeMs      int64     `json:"holdTimeMs"`
	KeepaliveTimeMs int64     `json:"keepaliveTimeMs"`
	ConnectTimeMs   int64     `json:"connectTimeMs"`
	GracefulRestart bool      `json:"gracefulRestart"`
	RestartTimeMs   int64     `json:"restartTimeMs"`
	StaleTimeMs     int64     `json:"staleTimeMs"`
	KeepOnNotice    bool      `json:"keepOnNotification"`      // RFC 8538
	PasswordFrom    string    `json:"passwordFrom"`            // where the password is kept; never the password
	Mode            string    `json:"mode" oneof:"group,node"` // who peers: group (every member) or node (nodes, each for itself)
	Nodes           []string  `json:"nodes"`                   // that peer, in mode node; null means all
	Sessions        []Session `json:"sessions"`                // of the answering member, or of nodes as they told it
	Version         uint64    `json:"version"`
}

// Session is one member's or one node's BGP session with a peer, as that one sees it. The other name is empty.
type Session struct {
	Member string `json:"member"`
	Node   string `json:"node"`
	State  string `json:"state"` // as the speaker names it: established, active, …; then, if known, a colon, reason and remedy
}

// Advertisement says how the addresses of some pools are announced to some peers.
type Advertisement struct {
	Name        string   `json:"name"`
	Pools       []string `json:"pools"`       // none means all, and addresses of no pool
	Peers       []string `json:"peers"`       // none means all
	Communities []string `json:"communities"` // "AS:value", "large:AS:value:value"
	LocalPref   uint32   `json:"localPref"`   // 0: not sent
	MED         uint32   `json:"med"`
	Nodes       []string `json:"nodes"` // that may be next hops; null means all
	// OnlyServices says that it is about the addresses of Services that name it, and no others.
	OnlyServices bool `json:"onlyServices"`
	Weighted     bool `json:"weighted"` // next hops weigh as much as they have ready endpoints
	// AggregateV4 and AggregateV6 are the lengths of prefixes that may be announced in the place of their addresses; 0: none.
	AggregateV4 uint8 `json:"aggregateV4"`
	AggregateV6 uint8 `json:"aggregateV6"`
	// Fallback says that it is about addresses that no other one is about, and no others.
	Fallback bool   `json:"fallback"`
	Version  uint64 `json:"version"`
}

// L2Advertisement says which nodes answer for the addresses of some pools on their segments.
type L2Advertisement struct {
	Name       string   `json:"name"`
	Pools      []string `json:"pools"`      // none means none
	Kept       []string `json:"kept"`       // those of them whose holders go on answering when they cannot reach the group
	Nodes      []string `json:"nodes"`      // that may answer; null means all
	Interfaces []string `json:"interfaces"` // where they answer; none means all
	Version    uint64   `json:"version"`
}
