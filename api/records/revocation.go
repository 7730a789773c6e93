// SPDX-License-Identifier: Apache-2.0

package records

// Revocation is an operator's word that certificates are good no more, or that a member is none any more; name is OF/SUBJECT.
type Revocation struct {
	Name    string `json:"name"`
	Of      string `json:"of"`      // a role, serial, or membership
	Subject string `json:"subject"` // who has certificates in that role, the serial number of one, or the member
	// GoodSince is when a certificate must say that it was issued to be good again; empty: none is.
	GoodSince string   `json:"goodSince"`
	Since     Revision `json:"since"`
	Time      string   `json:"time"`   // of the word; RFC 3339
	By        string   `json:"by"`     // who said it
	Reason    string   `json:"reason"` // in his words
}
