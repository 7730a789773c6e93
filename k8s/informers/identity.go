// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// identity is which cluster the API server belongs to: the UID of its namespace kube-system.
type identity struct {
	source *Source

	asking sync.Mutex // one asks at a time

	// Guarded by the source's mutex.

	uid       string
	number    int // counts the clusters that were seen before this one
	asked     int // counts the questions
	confirmed int // the last question that was answered by the cluster that we know
	trouble   *trouble
}

// confirm makes sure that the API server still belongs to the cluster that we know, after what was listed or opened just
// before the call: that counts only then. Another cluster empties the view.
//
// Lines that start together share an answer, but none to a question that was asked before they had what it is to vouch
// for: the address may have led elsewhere since, as it does when all connections break at once.
func (i *identity) confirm(ctx context.Context) error {
	s := i.source
	s.mu.Lock()
	before, cluster := i.asked, i.number
	s.mu.Unlock()
	i.asking.Lock()
	defer i.asking.Unlock()
	if answered, err := i.since(before, cluster); answered {
		return err
	}
	var uid string
	err := s.within(ctx, s.timing.ListTimeout, func(ctx context.Context) error {
		n, err := s.api.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			uid = string(n.UID)
		}
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		i.noteLocked(err)
		return err
	}
	if i.trouble != nil {
		i.trouble, s.notes = nil, true
		s.poke()
	}
	i.confirmed = i.asked
	if uid == i.uid {
		return nil
	}
	former := i.uid
	i.uid = uid
	s.poke()
	if former == "" {
		return nil
	}
	i.number++
	s.log.Warn("the API server belongs to another cluster", "source", Name, "was", former, "is", uid)
	for _, l := range s.lines {
		l.store.clearLocked(true)
		l.listed, l.version, l.floor = false, 0, 0
		l.doubt = doubt{}
		clear(l.buried) // what another cluster does not have may well be in this one
		if l.keeper != nil {
			l.keeper.Listed(l.kind, false)
		}
		l.restartLocked()
		poke(l.asked) // one without a definition sleeps for long
	}
	return errOtherCluster
}

// cluster counts the clusters that the API server belonged to.
func (s *Source) cluster() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identity.number
}

// since tells whether a question was answered that was asked after a count of them, and how. If not, another is counted.
func (i *identity) since(asked, cluster int) (answered bool, err error) {
	i.source.mu.Lock()
	defer i.source.mu.Unlock()
	switch {
	case i.number != cluster:
		return true, errOtherCluster
	case i.confirmed > asked:
		return true, nil
	}
	i.asked++
	return false, nil
}

var errOtherCluster = errors.New("the API server belongs to another cluster than before")

func (i *identity) noteLocked(err error) {
	s := i.source
	t, ok := s.diagnose(stageGet, "namespaces", err)
	if !ok {
		return
	}
	s.metrics.errors.WithLabelValues("Namespace", t.reason).Inc()
	if i.trouble != nil && *i.trouble == t {
		return
	}
	i.trouble, s.notes = &t, true
	s.poke()
}

func (i *identity) problems(all []world.Problem, away bool) []world.Problem {
	if i.trouble != nil && i.trouble.tells(away) {
		all = append(all, i.trouble.problem())
	}
	return all
}
