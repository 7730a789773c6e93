// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"fairlead.io/fairlead/fsm/world"
)

// life is an object from its creation to its deletion.
type life struct {
	key world.ID
	uid string
}

// maxAsked bounds how many objects are asked for by name on account of one list. Of more that are missing those asked
// for are spread evenly: a list that is wrong about many is found out by any of them.
const maxAsked = 200

// borneOut makes sure that what is known, to us or to others, and missing from a list is really gone, by asking for it by
// name. An error is noted.
func (l *line) borneOut(ctx context.Context, list runtime.Object) error {
	cluster := l.source.cluster()
	missing, version, err := l.missingFrom(list)
	if err != nil {
		l.note(stageList, err)
		return err
	}
	for i := range min(len(missing), maxAsked) {
		m := missing[i*len(missing)/min(len(missing), maxAsked)]
		there, err := l.alive(ctx, m, version)
		if err != nil {
			l.note(stageGet, err)
			return err
		}
		if there {
			err := fmt.Errorf("%w: it lacks objects that are there when they are asked for by name", errMalformed)
			l.note(stageList, err)
			l.source.log.Warn("list refused", "source", Name, "kind", l.kind, "object", m.key.String(), "version", version, "reason", "it is there")
			return err
		}
		l.bury(m, cluster)
	}
	return nil
}

// bury notes that something is gone from the cluster that was the source's when it was missed.
func (l *line) bury(m life, cluster int) {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	if l.source.identity.number == cluster {
		l.buried[m] = true
	}
}

// missingFrom lists what is known and missing from a list, and the list's version.
func (l *line) missingFrom(list runtime.Object) ([]life, uint64, error) {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errMalformed, err)
	}
	version, err := parseVersion(m.GetResourceVersion())
	if err != nil {
		return nil, 0, err
	}
	listed := map[world.ID]bool{}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		if m, ok := o.(metav1.Object); ok {
			listed[keyOf(m)] = true
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errMalformed, err)
	}
	others := l.source.known(l.kind)
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	return l.withOthersLocked(l.store.lacking(listed, version), others, listed, version), version, nil
}

// withOthersLocked adds to what is missing from a list what others know, in order. What they knew later than the list is no
// part of it.
func (l *line) withOthersLocked(missing []life, others []Known, listed map[world.ID]bool, version uint64) []life {
	seen, buried := make(map[life]bool, len(missing)), map[life]bool{}
	for _, m := range missing {
		seen[m] = true
	}
	for _, o := range others {
		switch m := (life{o.ID, o.UID}); {
		case l.only != (world.ID{}) && o.ID != l.only || listed[o.ID] || seen[m] || o.Version > version:
		case l.buried[m]:
			buried[m] = true
		default:
			seen[m] = true
			missing = append(missing, m)
		}
	}
	l.buried = buried
	slices.SortFunc(missing, func(a, b life) int { return a.key.Compare(b.key) })
	return missing
}

// getByName asks for an object; nil if it is not there.
func (l *line) getByName(ctx context.Context, key world.ID) (o metav1.Object, err error) {
	l.source.mu.Lock()
	ask := l.ask
	l.source.mu.Unlock()
	err = l.source.within(ctx, l.source.timing.ListTimeout, func(ctx context.Context) (err error) {
		o, err = ask.get(ctx, key)
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return o, nil
}

// alive tells whether an object that was known before a version was still there at it.
func (l *line) alive(ctx context.Context, of life, version uint64) (bool, error) {
	o, err := l.getByName(ctx, of.key)
	if err != nil || o == nil {
		return false, err
	}
	at, err := parseVersion(o.GetResourceVersion())
	if err != nil {
		return false, err
	}
	return string(o.GetUID()) == of.uid || at <= version, nil
}
