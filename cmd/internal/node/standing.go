// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"fairlead.io/fairlead/dataplane/agent"
)

const (
	// readyWithin is how long a ready agent may be at work on something new.
	readyWithin = 5 * time.Second
	// defaultUnhealthyAfter is how long nothing may have been carried out while there is something to do. Retries happen
	// every ten seconds at most, so that several have failed by then.
	defaultUnhealthyAfter = time.Minute
)

func (p *Process) alive() error {
	return notAlive(p.Status(), cmp.Or(p.config.UnhealthyAfter, defaultUnhealthyAfter), time.Now())
}

func (p *Process) healthy() error { return cmp.Or(p.alive(), leaving(p.Status())) }

// synced is a line about the last time that something was carried out.
func (p *Process) synced() string {
	s := p.Status()
	if s.Synced.IsZero() {
		return "last sync: none yet"
	}
	return fmt.Sprintf("last sync: %s, of %s", s.Synced.UTC().Format(time.RFC3339), s.Applied)
}

func (p *Process) ready() error {
	p.mu.Lock()
	missing, why := p.loop == nil, p.lack
	p.mu.Unlock()
	if missing {
		return fmt.Errorf("not enrolled yet: %w", cmp.Or(why, errors.New("on its way")))
	}
	return notReady(p.Status(), time.Now())
}

// notReady tells why a node should not be counted on: no member leads it, or it does not do as it was told.
func notReady(s agent.Status, now time.Time) error {
	switch {
	case s.Told.IsZero():
		return errors.New("no member has told this node anything yet; do `members` name the group's APIs?")
	case s.Applied.IsZero():
		return fmt.Errorf("nothing carried out yet of %s; the log says why", s.Told)
	case s.Member == "":
		return fmt.Errorf("no member serves this node; it keeps what it has, %s", s.Applied)
	case !s.Behind.IsZero() && now.Sub(s.Behind) > readyWithin:
		return behind(s, now)
	}
	return nil
}

// notAlive tells why a restart may help. That no member answers is no such reason: the node keeps its state.
func notAlive(s agent.Status, after time.Duration, now time.Time) error {
	if !s.Behind.IsZero() && now.Sub(s.Behind) > after {
		return behind(s, now)
	}
	return nil
}

// leaving tells why load balancers should send nothing new here, though a restart would not help.
func leaving(s agent.Status) error {
	if s.Leaving {
		return errors.New("the cluster's autoscaler is about to delete this node (taint ToBeDeletedByClusterAutoscaler)")
	}
	return nil
}

func behind(s agent.Status, now time.Time) error {
	return fmt.Errorf("nothing carried out for %v: at %s, told %s; the log says why",
		now.Sub(s.Behind).Truncate(time.Second), s.Applied, s.Told)
}
