// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"fairlead.io/fairlead/fsm/world"
)

// doubt is what is known of objects that are shown though they are gone, or may be: UIDs never come back, so that an API server which lists
// the one of a deleted object is behind, whatever version it claims to be at. Fields are guarded by the source's mutex.
type doubt struct {
	// suspects were not there when they were asked for by name, and no list has come since.
	suspects map[life]bool
	// refuted are in the newest list and not there by name. They do not count, whatever a watch says of them.
	refuted map[life]bool
	// vouched are those that somebody knows to be gone and that were there by name, and when that was.
	vouched map[life]time.Time
}

// vouchedFor is how long an answer by name counts against the knowledge that an object is gone. It may end at any time.
const vouchedFor = time.Minute

// tried makes sure that what a list shows and what is known, to us or to others, to be gone is really there, by asking for it by
// name. An error is noted. Of many that are asked for by and by, the others go on being doubted.
func (l *line) tried(ctx context.Context, list runtime.Object) error {
	disputed, err := l.disputed(list)
	if err != nil {
		l.note(stageList, err)
		return err
	}
	now := l.source.clock.Now()
	refuted, vouched := map[life]bool{}, map[life]time.Time{}
	for _, d := range disputed[:min(len(disputed), maxAsked)] {
		there, err := l.lives(ctx, d)
		if err != nil {
			l.note(stageGet, err)
			return err
		}
		if there {
			vouched[d] = now
		} else {
			refuted[d] = true
		}
	}
	l.settleDoubt(refuted, vouched)
	return nil
}

// disputed lists what a list shows of which somebody knows that it is gone, or that it was not there by name. Those come first that were
// not asked for in vain.
func (l *line) disputed(list runtime.Object) (out []life, err error) {
	var shown []life
	err = meta.EachListItem(list, func(o runtime.Object) error {
		if m, ok := o.(metav1.Object); ok && m.GetUID() != "" {
			shown = append(shown, life{keyOf(m), string(m.GetUID())})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	dead := make([]bool, len(shown))
	for i, s := range shown {
		dead[i] = l.source.dead(l.kind, s.key) == s.uid
	}
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	for i, s := range shown {
		if dead[i] || l.suspects[s] || l.refuted[s] || l.store.sawGone(s) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b life) int { return l.vouched[a].Compare(l.vouched[b]) })
	return out, nil
}

// settleDoubt keeps what came of asking for what is disputed, and says what is new of it.
func (l *line) settleDoubt(refuted map[life]bool, vouched map[life]time.Time) {
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range refuted {
		if !l.refuted[d] {
			s.log.Warn("object listed that is gone", "source", Name, "kind", l.kind, "object", d.key.String(), "uid", d.uid,
				"reason", "it is not there when it is asked for by name", "remedy", "it does not count; look after the API server, whose lists are out of date")
		}
	}
	for d, at := range l.vouched {
		if _, anew := vouched[d]; !anew && s.clock.Since(at) < vouchedFor {
			vouched[d] = at
		}
	}
	for d := range refuted {
		delete(vouched, d)
	}
	l.suspects, l.refuted, l.vouched = nil, refuted, vouched
}

// lives tells whether an object is there by name, in that life of it.
func (l *line) lives(ctx context.Context, of life) (bool, error) {
	o, err := l.getByName(ctx, of.key)
	return o != nil && string(o.GetUID()) == of.uid, err
}

// shownLocked leaves out of the objects of a list what was found to be gone.
func (l *line) shownLocked(items []any) []any {
	if len(l.refuted) == 0 {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(o any) bool {
		m, ok := o.(metav1.Object)
		return ok && l.refuted[life{keyOf(m), string(m.GetUID())}]
	})
}

// goneLocked tells whether a life that a watch shows is known to have ended: a list is asked for then, on account of which it is asked for by
// name.
func (l *line) goneLocked(of life) bool {
	if of.uid == "" || !l.refuted[of] && !l.store.sawGone(of) {
		return false
	}
	poke(l.asked)
	return true
}

// vouchedLocked adds what somebody knows to be gone and was there by name just now.
func (l *line) vouchedLocked(all []world.Ref, now time.Time) []world.Ref {
	for d, at := range l.vouched {
		if now.Sub(at) < vouchedFor {
			all = append(all, world.Ref{Kind: l.kind, ID: d.key, UID: d.uid})
		}
	}
	return all
}

// Objects that are shown are asked for by name now and then: a deletion of which no watch told, and which lists do not show either, is found
// by nothing else. Of few objects one is asked for each Timing.Look, of more each within twelve times that, and of many no more than twenty in that time.
const (
	lookRounds = 12
	lookMost   = 20
)

// lookAfter asks for one object after the other by name until ctx ends: first for what has been silent the longest.
func (l *line) lookAfter(ctx context.Context) {
	s := l.source
	slowest := s.timing.Look
	var round []life
	for every := slowest; ctx.Err() == nil; s.sleep(ctx, every, nil) {
		if len(round) == 0 {
			s.mu.Lock()
			round = l.store.all()
			s.mu.Unlock()
			every = min(max(lookRounds*slowest/time.Duration(len(round)+1), slowest/lookMost), slowest)
		}
		if len(round) > 0 {
			l.lookFor(ctx, round[0])
			round = round[1:]
		}
	}
}

// lookFor asks for an object that is shown. If it is not there, or another life of it is, a list is asked for, which shows what that
// means: it has to be newer than what is known, and what it shows of those is asked for once more.
func (l *line) lookFor(ctx context.Context, of life) {
	there, err := l.lives(ctx, of)
	if err != nil || there {
		return // whatever is wrong with the server is noted by those who cannot do without it
	}
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.listed || !l.store.shows(of) {
		return // its deletion was heard of meanwhile
	}
	if l.suspects == nil {
		l.suspects = map[life]bool{}
	}
	l.suspects[of] = true
	poke(l.asked)
}
