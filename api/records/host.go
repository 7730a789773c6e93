// SPDX-License-Identifier: Apache-2.0

package records

// Host is a machine outside the cluster whose agent resolves service addresses for its own programs.
type Host struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"` // where other machines reach it, as it says itself
	Boot      string   `json:"boot"`      // of its agent's last hello; empty before the first one
	Since     Revision `json:"since"`     // when the group took it in
	// Acknowledged is a revision that this boot carried out; null if none is known. Newer ones are noted now and then.
	Acknowledged *Revision `json:"acknowledged"`
}
