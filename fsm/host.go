// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"slices"
)

// FormatHosts is the first format with hosts: members before it cannot read them, and end where they come to one.
const FormatHosts uint32 = 2

const (
	// maxHosts bounds the hosts of a group, maxUnderlay the addresses of one.
	maxHosts    = 10_000
	maxUnderlay = 16
)

// Host is a machine outside the cluster whose agent resolves service addresses for its own programs. It is never a next hop and
// holds no lease, and nobody waits for it, but for the number of a tunnel that it may have in its tables. It may be called as a node is, and is another machine nevertheless. The group
// serves only hosts that are here, so that one that is taken out is told nothing more. From format 2 on.
type Host struct {
	seal
	ID    HostID   `pb:"1" json:"id"`
	Since Revision `pb:"2" json:"since"`                    // when the group took it in
	Boot  BootID   `pb:"3" json:"boot,omitempty" max:"128"` // of its agent's last hello; empty before the first one
	// Addresses are where other machines reach it, as it says itself.
	Addresses []netip.Addr `pb:"4" json:"addresses"`
	// Acknowledged is a revision that this boot of the host carried out; newer ones are noted now and then.
	Acknowledged   Revision `pb:"5" json:"acknowledged"`
	AcknowledgedAt Revision `pb:"6" json:"acknowledgedAt"` // when that was committed
	History        Trail    `pb:"7" json:"history"`
	// Tunnels says that its agent makes tunnels to nodes.
	Tunnels bool `pb:"8" json:"tunnels,omitempty"`
}

// Table is TableHosts.
func (*Host) Table() Table { return TableHosts }

// Key is the host's name.
func (h *Host) Key() string { return string(h.ID) }

// RegisterHost is the hello of a host that the group took in: under which boot it runs, where it is, and whether it makes tunnels. With Admit it takes the host
// in, on an operator's word; without a boot it says nothing else.
type RegisterHost struct {
	ID        HostID       `pb:"1"`
	Boot      BootID       `pb:"2" max:"128"`
	Addresses []netip.Addr `pb:"3"`
	Admit     bool         `pb:"4"`
	Tunnels   bool         `pb:"5"`
}

// Kind is KindRegisterHost.
func (*RegisterHost) Kind() Kind { return KindRegisterHost }

func (c *RegisterHost) apply(tx *txn) Outcome {
	subject := "host " + string(c.ID)
	if out, old := tx.formatBelow(FormatHosts, subject); old {
		return out
	}
	if c.ID == "" || c.Boot == "" && !c.Admit || len(c.Addresses) > maxUnderlay || slices.ContainsFunc(c.Addresses, unfit) {
		return refuse(RejectInvalid, subject, "", "a name, a boot id and up to "+utoa(maxUnderlay)+" addresses")
	}
	if c.Admit {
		if out := tx.admitHost(c.ID, "taken in"); out.Reject != Accepted {
			return out
		}
	}
	h, ok := find[*Host](tx.rows, TableHosts, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "a host that the group took in")
	}
	if c.Boot == "" || h.Boot == c.Boot && slices.Equal(h.Addresses, c.Addresses) && h.Tunnels == c.Tunnels {
		return tx.ok()
	}
	next := *h
	next.Addresses, next.Tunnels = c.Addresses, c.Tunnels
	if h.Boot != c.Boot {
		next.Boot, next.Acknowledged, next.AcknowledgedAt = c.Boot, Revision{}, Revision{}
		next.History = tx.step(h.History, "booted "+string(c.Boot))
	}
	tx.put(&next)
	return tx.ok()
}

// unfit tells whether an address says nothing of where a machine is.
func unfit(a netip.Addr) bool { return !a.IsValid() || a.Is4In6() || a.Zone() != "" }

// admitHost takes a host in that is not there.
func (tx *txn) admitHost(id HostID, how string) Outcome {
	if _, known := find[*Host](tx.rows, TableHosts, string(id)); known {
		return tx.ok()
	}
	if n := len(list[*Host](tx.rows, TableHosts)); n >= maxHosts {
		return refuse(RejectInUse, "host "+string(id), utoa(uint64(n))+" hosts", "fewer")
	}
	tx.put(&Host{ID: id, Since: tx.revision(), History: tx.step(nil, how)})
	return tx.ok()
}

// ReportHosts carries what hosts carried out, coalesced by the proposer.
type ReportHosts struct {
	Marks []HostMark `pb:"1"`
}

// HostMark says that a host carried out everything up to a revision.
type HostMark struct {
	Host HostID   `pb:"1"`
	Boot BootID   `pb:"2" max:"128"`
	Upto Revision `pb:"3"`
}

// Kind is KindReportHosts.
func (*ReportHosts) Kind() Kind { return KindReportHosts }

// Marks that do not hold are skipped one by one: they come from different hosts.
func (c *ReportHosts) apply(tx *txn) Outcome {
	out := tx.ok()
	for _, m := range c.Marks {
		if o := tx.reportHost(m); o.Reject != Accepted {
			out = o
		}
	}
	return out
}

func (tx *txn) reportHost(m HostMark) Outcome {
	subject := "host " + string(m.Host)
	h, ok := find[*Host](tx.rows, TableHosts, string(m.Host))
	switch {
	case !ok:
		return refuse(RejectNotFound, subject, "", "")
	case h.Boot != m.Boot || m.Boot == "":
		return refuse(RejectStaleBoot, subject, string(h.Boot), string(m.Boot))
	case m.Upto.Before(h.Acknowledged) || tx.revision().Before(m.Upto):
		return refuse(RejectStaleRevision, subject, h.Acknowledged.String(), m.Upto.String())
	}
	next := *h
	next.Acknowledged, next.AcknowledgedAt = m.Upto, tx.revision()
	tx.put(&next)
	return tx.ok()
}

// RemoveHost takes a host out. Tokens that were offered for it and not used end, too: nobody comes back by one of them.
type RemoveHost struct {
	ID HostID `pb:"1"`
}

// Kind is KindRemoveHost.
func (*RemoveHost) Kind() Kind { return KindRemoveHost }

func (c *RemoveHost) apply(tx *txn) Outcome {
	h, ok := find[*Host](tx.rows, TableHosts, string(c.ID))
	ended := false
	for _, e := range list[*Enrolment](tx.rows, TableEnrolments) {
		if e.Outside && !e.Used && string(e.Node) == string(c.ID) {
			tx.bury(e, e.History, "its host was removed")
			ended = true
		}
	}
	if !ok && !ended {
		return refuse(RejectNotFound, "host "+string(c.ID), "", "")
	}
	if ok {
		tx.bury(h, h.History, "removed")
	}
	return tx.ok()
}
