// SPDX-License-Identifier: Apache-2.0

// Package legacy reads config_bgp.toml, GoBGP's configuration file, as the controllers before us used it.
//
// It knows which keys mean something for a speaker that announces and accepts nothing, and tells which ones it ignores.
// It promises that a file which worked goes on working, that a neighbour which cannot be used costs no other one, and that
// each such neighbour, and a file that cannot be used at all, is told of by an error that names file, line and field. It
// reads no files itself.
//
// Start reading at Parse; peer.go has the keys of a neighbour.
package legacy

import (
	"fmt"
	"net/netip"

	"fairlead.io/fairlead/dataplane/bgp"
)

// Global is what the file says about the speaker.
type Global struct {
	ASN         uint32
	RouterID    netip.Addr   // zero if the file leaves it out: one file serves several speakers
	ListenPort  uint16       // 0: do not listen
	ListenAddrs []netip.Addr // empty: all
	PortForward bool         // port 179 shall be forwarded to ListenPort (porter-config.using-port-forward)
}

// Config is what the file says.
type Config struct {
	Global   Global
	Peers    []bgp.Peer
	Warnings []Warning // in order of lines
	// Faults are the neighbours that cannot be used, in the order of the file.
	Faults []Fault
}

// Fault is a neighbour that cannot be used.
type Fault struct {
	// Address and Password are its own, as far as they can be read.
	Address  netip.Addr
	Password bgp.Secret
	Err      *Error
}

// Whole is nil if all neighbours of the file can be used, and else tells of the first that cannot.
func (c *Config) Whole() error {
	if len(c.Faults) == 0 {
		return nil
	}
	return c.Faults[0].Err
}

// Warning tells of something in the file that has no effect, or one that its author may not want.
type Warning struct {
	File  string
	Line  int
	Field string
	Text  string
	// Remedy is what its author may do.
	Remedy string
}

// String returns the warning on one line.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d: %s: %s (%s)", w.File, w.Line, w.Field, w.Text, w.Remedy)
}

// Error tells why a file cannot be used.
type Error struct {
	File   string
	Line   int
	Field  string // empty if the file is no TOML at all
	Reason string
	Remedy string
}

// Error returns all of it on one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d: ", e.File, e.Line)
	if e.Field != "" {
		s += e.Field + ": "
	}
	s += e.Reason
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Parse reads the text of a file. file is its name, for errors and warnings. The error is an *Error, and about more than a
// neighbour: those are Faults.
func Parse(file string, text []byte) (Config, error) {
	doc, err := parseDocument(file, text)
	if err != nil {
		return Config{}, err
	}
	var c Config
	c.Global = readGlobal(doc.root.child("global"))
	c.Global.PortForward = doc.root.child("porter-config").flag("using-port-forward", false)
	seen := map[netip.Addr]bool{}
	neighbors := doc.root.list("neighbors")
	if doc.err != nil {
		return Config{}, doc.err
	}
	for _, n := range neighbors {
		peer, on := readNeighbor(n, c.Global.ASN)
		if on && doc.err == nil && seen[peer.Address] {
			n.child("config").fail("neighbor-address", fmt.Sprintf("%s is given twice", peer.Address), "keep one of the neighbours")
		}
		switch {
		case doc.err != nil:
			c.Faults = append(c.Faults, Fault{peer.Address, peer.Password, doc.err})
			doc.err = nil
		case on:
			seen[peer.Address] = true
			c.Peers = append(c.Peers, peer)
		}
	}
	doc.root.warnUnread()
	c.Warnings = doc.sortedWarnings()
	return c, nil
}

func readGlobal(g node) Global {
	c := g.child("config")
	out := Global{
		ASN:      uint32(c.number("as", 1, 1<<32-1, required)),
		RouterID: c.address("router-id", optional),
	}
	if out.RouterID.IsValid() && !out.RouterID.Is4() {
		c.fail("router-id", fmt.Sprintf("%s is no IPv4 address", out.RouterID), "a router id is written as one; leave it out to use the node's address")
	}
	switch port := c.number("port", -1, 65535, bgp.DefaultPort); port {
	case -1:
	case 0:
		out.ListenPort = bgp.DefaultPort
	default:
		out.ListenPort = uint16(port)
	}
	out.ListenAddrs = c.addresses("local-address-list")
	// What it does is for received routes, of which there are none.
	g.child("use-multiple-paths").child("config").flag("enabled", false)
	return out
}
