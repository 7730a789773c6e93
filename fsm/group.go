// SPDX-License-Identifier: Apache-2.0

package fsm

import "fmt"

// groupKey is the key of the one row of TableGroup.
const groupKey = "group"

// Group is the identity and the committed settings of the controller group.
type Group struct {
	seal
	ID       GroupID  `pb:"1" json:"id"`
	Epoch    Epoch    `pb:"2" json:"epoch"`
	Format   uint32   `pb:"3" json:"format"`
	Settings Settings `pb:"4" json:"settings"`
	// Quarantine is the revision since which, after a recover or restore, nothing is removed, granted or given
	// to another owner: the outside may know more than the record. Zero when there is none (design §4).
	Quarantine Revision `pb:"5" json:"quarantine"`
	Checkpoint Index    `pb:"6" json:"checkpoint"`
	History    Trail    `pb:"7" json:"history"`
	// UntracedBefore bounds the age of BackendRecords that a binding may have been taken over from without a trace being
	// left (TraceOf): those that were made earlier than this. It is zero while every trace is there.
	UntracedBefore int64 `pb:"8" json:"untracedBefore,omitempty"` // seconds since 1970, by the API server's clock
	// LastNumber is the newest that a policy got without asking for one. From format 2 on.
	LastNumber uint32 `pb:"9" json:"lastNumber,omitempty"`
	// Tunnels, and the newest number that a host got of them, are from format 2 on.
	Tunnels    TunnelSettings `pb:"40" json:"tunnels,omitzero"`
	LastTunnel uint32         `pb:"41" json:"lastTunnel,omitempty"`
	// Lineage is zero as long as it is of the group's own id and epoch (Of). From format 2 on.
	Lineage Lineage `pb:"42" json:"lineage,omitzero"`
}

// Table is TableGroup.
func (*Group) Table() Table { return TableGroup }

// Key is the same for every group: there is one row.
func (*Group) Key() string { return groupKey }

// Alike tells whether nothing was decided between two states of the group: up to where its copies were compared is no decision.
func (g *Group) Alike(o *Group) bool {
	return g.ID == o.ID && g.Epoch == o.Epoch && g.Format == o.Format && g.Settings == o.Settings && g.Quarantine == o.Quarantine &&
		g.UntracedBefore == o.UntracedBefore && g.LastNumber == o.LastNumber && g.Tunnels == o.Tunnels && g.LastTunnel == o.LastTunnel &&
		g.Lineage == o.Lineage
}

// Settings are committed, so that every member bounds its copy alike.
type Settings struct {
	// HistoryLimit is how many transitions each record keeps; 0 means 8, at most 64.
	HistoryLimit uint32 `pb:"1" json:"historyLimit"`
	// GraveLimit is how many trails of removed records are kept; 0 means 10,000, at most 1,000,000.
	GraveLimit uint32 `pb:"2" json:"graveLimit"`
	// Unsteered says that somebody else prepares the nodes for the addresses (the daemon of an old
	// installation): a next hop then counts without an acknowledgement.
	Unsteered bool `pb:"3" json:"unsteered"`
}

func (s Settings) historyLimit() int { return int(orDefault(s.HistoryLimit, 8)) }
func (s Settings) graveLimit() int   { return int(orDefault(s.GraveLimit, 10_000)) }

// bounded refuses limits that bound nothing.
func (s Settings) bounded() (Outcome, bool) {
	if s.HistoryLimit > 64 || s.GraveLimit > 1_000_000 {
		return refuse(RejectInvalid, "settings", "history at most 64, graves at most 1000000",
			fmt.Sprintf("history %d, graves %d", s.HistoryLimit, s.GraveLimit)), false
	}
	return Outcome{}, true
}

func orDefault(v, def uint32) uint32 {
	if v == 0 {
		return def
	}
	return v
}

// Formats of the record that this release can apply. A group starts with the newest one that its first
// member knows and raises it only by RaiseFormat.
const (
	OldestFormat uint32 = 1
	NewestFormat uint32 = 2
)

// FormatRestores is the first format of a group that restores backups through its log: members before it cannot read such entries.
const FormatRestores uint32 = 2

// InitGroup is the first command of a group: it names it and opens epoch 1.
type InitGroup struct {
	Group    GroupID  `pb:"1"`
	Format   uint32   `pb:"2"`
	Settings Settings `pb:"3"`
}

// Kind is KindInitGroup.
func (*InitGroup) Kind() Kind { return KindInitGroup }

func (c *InitGroup) apply(tx *txn) Outcome {
	g := tx.group()
	if g.ID != "" {
		return refuse(RejectExists, "group", string(g.ID), string(c.Group))
	}
	if c.Group == "" || c.Format < OldestFormat {
		return refuse(RejectInvalid, "group", "", fmt.Sprintf("%q format %d", c.Group, c.Format))
	}
	if out, ok := c.Settings.bounded(); !ok {
		return out
	}
	mustKnow(c.Format)
	next := &Group{ID: c.Group, Epoch: 1, Format: c.Format, Settings: c.Settings}
	tx.meta = next
	next.History = tx.step(nil, "group formed")
	tx.put(next)
	return tx.ok()
}

// NewEpoch begins another life of the group, before anything else happens in it: after a recover or a
// restore. Every open operation becomes unknown and the quarantine starts.
type NewEpoch struct {
	Group GroupID `pb:"1"`
	Epoch Epoch   `pb:"2"`
	Cause string  `pb:"3"`
	// Lineage is that of the log that the epoch is begun in. It is zero for one of its own, as in each epoch before format 2.
	Lineage Lineage `pb:"4"`
}

// Kind is KindNewEpoch.
func (*NewEpoch) Kind() Kind { return KindNewEpoch }

func (c *NewEpoch) apply(tx *txn) Outcome {
	g := tx.group()
	if g.ID == "" || c.Group != g.ID {
		return refuse(RejectNotFound, "group", string(g.ID), string(c.Group))
	}
	if c.Epoch <= g.Epoch {
		return refuse(RejectEpoch, "group "+string(g.ID), fmt.Sprint(g.Epoch), fmt.Sprint(c.Epoch))
	}
	if out, ok := c.Lineage.bounded(tx, c.Epoch); !ok {
		return out
	}
	next := *g
	next.Epoch, next.Lineage = c.Epoch, c.Lineage
	next.Quarantine = Revision{c.Epoch, tx.state.applied}
	tx.meta = &next
	next.History = tx.step(g.History, "epoch "+fmt.Sprint(c.Epoch)+": "+c.Cause)
	tx.put(&next)
	for _, op := range list[*Operation](tx.rows, TableOperations) {
		if op.Open {
			tx.endUnknown(op, "epoch ended")
		}
	}
	return tx.ok()
}

// EndQuarantine is proposed once a complete view was read and what the outside shows was adopted.
type EndQuarantine struct {
	Since Revision `pb:"1"`
}

// Kind is KindEndQuarantine.
func (*EndQuarantine) Kind() Kind { return KindEndQuarantine }

func (c *EndQuarantine) apply(tx *txn) Outcome {
	g := tx.group()
	if g.Quarantine.IsZero() || g.Quarantine != c.Since {
		return refuse(RejectStaleRevision, "quarantine", g.Quarantine.String(), c.Since.String())
	}
	next := *g
	next.Quarantine = Revision{}
	next.History = tx.step(g.History, "quarantine ended")
	tx.put(&next)
	return tx.ok()
}

// quarantined refuses what must wait until the outside was adopted.
func (tx *txn) quarantined(subject string) (Outcome, bool) {
	if q := tx.group().Quarantine; !q.IsZero() {
		return refuse(RejectQuarantine, subject, q.String(), ""), true
	}
	return Outcome{}, false
}

// RaiseFormat commits a newer format. It is refused while any member reported an older one.
type RaiseFormat struct {
	Format uint32 `pb:"1"`
}

// Kind is KindRaiseFormat.
func (*RaiseFormat) Kind() Kind { return KindRaiseFormat }

func (c *RaiseFormat) apply(tx *txn) Outcome {
	g := tx.group()
	want := fmt.Sprint(c.Format)
	if c.Format <= g.Format {
		return refuse(RejectFormat, "format", fmt.Sprint(g.Format), want)
	}
	members := list[*Member](tx.rows, TableMembers)
	if len(members) == 0 {
		return refuse(RejectFormat, "members", "none reported", want) // silence is no consent
	}
	for _, m := range members {
		if m.Format < c.Format {
			return refuse(RejectFormat, "member "+string(m.Server), fmt.Sprint(m.Format), want)
		}
	}
	mustKnow(c.Format)
	next := *g
	next.Format = c.Format
	next.History = tx.step(g.History, "format "+want)
	tx.put(&next)
	return tx.ok()
}

// formatBelow refuses what came with a later format than the group's.
func (tx *txn) formatBelow(want uint32, subject string) (Outcome, bool) {
	have := tx.group().Format
	return refuse(RejectFormat, subject, utoa(uint64(have)), utoa(uint64(want))), have < want
}

// FormatError says that the group's format is newer than what this release can apply.
type FormatError struct{ Format uint32 }

// Error says so, and what to do.
func (e *FormatError) Error() string {
	return fmt.Sprintf("the group's format is %d and this release knows up to %d; upgrade this member", e.Format, NewestFormat)
}

// CheckFormat tells whether this release can apply a format. Errors: *FormatError.
func CheckFormat(format uint32) error {
	if format > NewestFormat {
		return &FormatError{format}
	}
	return nil
}

// mustKnow stops a release that cannot apply a committed format, with a *FormatError: a refusal here would fork the
// record.
func mustKnow(format uint32) {
	if err := CheckFormat(format); err != nil {
		panic(err)
	}
}

// PutSettings replaces the committed settings.
type PutSettings struct {
	Settings Settings `pb:"1"`
}

// Kind is KindPutSettings.
func (*PutSettings) Kind() Kind { return KindPutSettings }

func (c *PutSettings) apply(tx *txn) Outcome {
	if out, ok := c.Settings.bounded(); !ok {
		return out
	}
	next := *tx.group()
	next.Settings = c.Settings
	next.History = tx.step(next.History, "settings changed")
	tx.put(&next)
	return tx.ok()
}

// Checkpoint carries the proposer's digest at an earlier index. Each member notes whether its own was another one then (Contradicted): what it makes of
// that is no part of the record, and which of the two is wrong one digest does not tell.
type Checkpoint struct {
	Index  Index  `pb:"1"`
	Digest Digest `pb:"2"`
}

// Kind is KindCheckpoint.
func (*Checkpoint) Kind() Kind { return KindCheckpoint }

func (c *Checkpoint) apply(tx *txn) Outcome {
	g := tx.group()
	if c.Index <= g.Checkpoint || c.Index >= tx.state.applied {
		return refuse(RejectStaleRevision, "checkpoint", fmt.Sprint(g.Checkpoint), fmt.Sprint(c.Index))
	}
	tx.state.recent.compare(c)
	next := *g
	next.Checkpoint = c.Index
	tx.put(&next)
	return tx.ok()
}
