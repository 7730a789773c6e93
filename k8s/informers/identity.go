// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// identity is which cluster the API server belongs to: the UID of its namespace kube-system.
type identity struct {
	source *Source

	asking sync.Mutex // one asks at a time

	// Guarded by the source's mutex.

	uid     string
	number  int       // counts the clusters that were seen before this one
	at      time.Time // when it was confirmed last
	trouble *trouble
}

// holds is how long an answer holds, so that lines that start together ask once.
const holds = time.Second

// confirm makes sure that the API server still belongs to the cluster that we know. What was listed counts only after
// that. Another cluster empties the view.
func (i *identity) confirm(ctx context.Context) error {
	i.asking.Lock()
	defer i.asking.Unlock()
	s := i.source
	s.mu.Lock()
	recent := i.uid != "" && i.trouble == nil && s.clock.Since(i.at) < holds
	s.mu.Unlock()
	if recent {
		return nil
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
	i.at = s.clock.Now()
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
		l.restartLocked()
	}
	return errOtherCluster
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

func (i *identity) problems(all []world.Problem) []world.Problem {
	if i.trouble != nil {
		all = append(all, i.trouble.problem())
	}
	return all
}
