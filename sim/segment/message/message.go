// SPDX-License-Identifier: Apache-2.0

// Package message is what an agent and the links of its simulated node say to each other. Guests and models share it.
//
// A connection is opened for one purpose, which its hello names: List answers with all links and ends, Watch sends a byte at
// once and with each change, and one that Of made carries frames, a frame in a message, both ways.
package message

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// Port is where the links of a machine are found by its own processes.
const Port = "links"

// Purposes of connections.
const (
	List  = "list"
	Watch = "watch"
)

const of = "frames of "

// Of is the purpose of a connection that carries frames of a link.
func Of(link string) string { return of + link }

// LinkOf reads it.
func LinkOf(hello string) (link string, ok bool) { return strings.CutPrefix(hello, of) }

// Link is a network interface as a process sees it.
type Link struct {
	Name    string
	Index   int
	MAC     [6]byte
	Up      bool // it has a carrier
	Address netip.Prefix
}

// Encode writes all links of a machine.
func Encode(all []Link) []byte {
	b, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("encode links: %v", err)) // plain values only
	}
	return b
}

// Decode reads them.
func Decode(b []byte) (all []Link, err error) {
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	return all, nil
}
