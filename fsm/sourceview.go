// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"slices"
)

// SourceView is the newest state of a source that was acted on. It is committed with the plan's own commands,
// never as a write of its own (design §5).
type SourceView struct {
	seal
	Source   string        `pb:"1" json:"source"`
	Cluster  string        `pb:"2" json:"cluster"`  // UID of kube-system; empty where the source has none
	Versions []KindVersion `pb:"3" json:"versions"` // by kind; one that a view does not name stays
	// Rewind is set by an operator who accepts that the cluster was restored from a backup: the next
	// ObserveView may then be older.
	Rewind bool `pb:"4" json:"rewind"`
}

// KindVersion is the newest resourceVersion of a kind of object.
type KindVersion struct {
	Kind    string `pb:"1" json:"kind"`
	Version uint64 `pb:"2" json:"version"`
}

// Table is TableViews.
func (*SourceView) Table() Table { return TableViews }

// Key is the source's name.
func (v *SourceView) Key() string { return v.Source }

// Version gives the newest version of a kind that was acted on, 0 for none.
func (v *SourceView) Version(kind string) uint64 {
	for _, k := range v.Versions {
		if k.Kind == kind {
			return k.Version
		}
	}
	return 0
}

// ObserveView says up to where a source was acted on. It never runs back, but once after AcceptRewind, and
// never turns to another cluster.
type ObserveView struct {
	Source   string        `pb:"1"`
	Cluster  string        `pb:"2"`
	Versions []KindVersion `pb:"3"`
}

// Kind is KindObserveView.
func (*ObserveView) Kind() Kind { return KindObserveView }

func (c *ObserveView) apply(tx *txn) Outcome {
	subject := "source " + c.Source
	if c.Source == "" {
		return refuse(RejectInvalid, subject, "", "a name")
	}
	next := &SourceView{Source: c.Source, Cluster: c.Cluster}
	if old, ok := find[*SourceView](tx.rows, TableViews, c.Source); ok {
		if old.Cluster != "" && old.Cluster != c.Cluster {
			return refuse(RejectStaleRevision, subject, old.Cluster, c.Cluster)
		}
		if !old.Rewind {
			next.Versions = slices.Clone(old.Versions)
		}
	}
	for _, k := range c.Versions {
		i, known := slices.BinarySearchFunc(next.Versions, k.Kind, func(v KindVersion, kind string) int { return cmp.Compare(v.Kind, kind) })
		switch {
		case !known:
			next.Versions = slices.Insert(next.Versions, i, k)
		case k.Version < next.Versions[i].Version:
			return refuse(RejectStaleRevision, subject+" "+k.Kind, utoa(next.Versions[i].Version), utoa(k.Version))
		default:
			next.Versions[i] = k
		}
	}
	tx.put(next)
	return tx.ok()
}

// AcceptRewind is an operator's word that an older view of the same cluster is the truth: its etcd was
// restored from a backup.
type AcceptRewind struct {
	Source string `pb:"1"`
}

// Kind is KindAcceptRewind.
func (*AcceptRewind) Kind() Kind { return KindAcceptRewind }

func (c *AcceptRewind) apply(tx *txn) Outcome {
	v, ok := find[*SourceView](tx.rows, TableViews, c.Source)
	if !ok {
		return refuse(RejectNotFound, "source "+c.Source, "", "")
	}
	next := *v
	next.Rewind = true
	tx.put(&next)
	return tx.ok()
}
