// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) hold(h *fsm.Hold) any {
	return records.Hold{
		Name: string(h.ID), Of: h.Of, Subjects: words(h.Subjects), Why: h.Why, Since: revision(h.Since), Released: h.Released,
	}
}

func (r *renderer) member(m *fsm.Member) any {
	return records.Member{
		Name: string(m.Server), Member: m.Name, Raft: m.Raft, API: m.API, Format: m.Format, Version: m.Version,
		Announced: maybe(m.Announced), Away: m.Absence.String(),
	}
}

func (r *renderer) source(s *fsm.SourceView) any {
	d := records.Source{Name: s.Source, Cluster: s.Cluster, Versions: map[string]uint64{}, Rewind: s.Rewind}
	if h := leader.RewindOf(r.view, s.Source); h != nil {
		d.RanBack = h.Why
	}
	for _, k := range s.Versions {
		d.Versions[k.Kind] = k.Version
	}
	return d
}

func (r *renderer) group(g *fsm.Group) any {
	return records.Group{
		Name: g.Key(), ID: string(g.ID), Epoch: uint64(g.Epoch), Format: g.Format,
		Settings: records.Settings{
			HistoryLimit: g.Settings.HistoryLimit, GraveLimit: g.Settings.GraveLimit, Unsteered: g.Settings.Unsteered,
		},
		Quarantine: maybe(g.Quarantine), Checkpoint: uint64(g.Checkpoint), Digest: r.view.Digest().String(),
	}
}
