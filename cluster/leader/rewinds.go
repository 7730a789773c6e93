// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm"
)

// Rewinds are the holds of sources that ran back, in order of their ids. An operator's `accept-rewind` ends them; so does their release.
func Rewinds(record *fsm.View) []*fsm.Hold {
	return slices.DeleteFunc(fsm.List[*fsm.Hold](record, fsm.TableHolds), func(h *fsm.Hold) bool { return h.Of != fsm.OfSource })
}

// RewindOf finds the hold of a source that ran back; nil if there is none.
func RewindOf(record *fsm.View, source string) *fsm.Hold {
	for _, h := range Rewinds(record) {
		if slices.Contains(h.Subjects, source) {
			return h
		}
	}
	return nil
}

// AcceptRewind are the commands of the word that a source was set back: they go into one entry, so that nobody finds the hold who has not
// heard the word.
func AcceptRewind(record *fsm.View, source string) []fsm.Command {
	out := []fsm.Command{&fsm.AcceptRewind{Source: source}}
	if h := RewindOf(record, source); h != nil {
		out = append(out, &fsm.DeleteHold{ID: h.ID})
	}
	return out
}

// rewinds is what there is to say in the record of a source that ran back, or of the end of that. A hold tells every member, and the next
// leader; the part whose view it was puts it there.
func (s *sentry) rewinds(record *fsm.View, source string, v *Verdict) (reason string, out []fsm.Command) {
	h := RewindOf(record, source)
	seen, acted := fsm.Get[*fsm.SourceView](record, fsm.TableViews, source)
	accepted := acted && seen.Rewind
	switch {
	case h != nil && s.part.holds(h.ID) && (v.Act || accepted):
		return "it was accepted", []fsm.Command{&fsm.DeleteHold{ID: h.ID}}
	case h != nil && h.Released && acted:
		return "its hold was released", AcceptRewind(record, source)
	case v.Rewind == nil || accepted || !acted:
		return "", nil
	case v.Rewind.Accept:
		return "rewinds are accepted by configuration", AcceptRewind(record, source)
	case h == nil:
		return "the source ran back", []fsm.Command{&fsm.PutHold{
			ID: fsm.HoldID(s.part.holdPrefix() + "rewind-" + source), Of: fsm.OfSource, Subjects: []string{source}, Why: v.Rewind.Why,
		}}
	}
	return "", nil
}
