// SPDX-License-Identifier: Apache-2.0

package records

// Tunnel is a host that others reach by a tunnel; name is the host's.
type Tunnel struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"` // the host's tunnel addresses
	Underlay  string   `json:"underlay"`  // where others send its packets to
	Ready     bool     `json:"ready"`     // the host has acknowledged that it has them
	Leaving   bool     `json:"leaving"`   // given up; its addresses are free once nobody has them in tables
	Since     Revision `json:"since"`     // when that came to be so
}
