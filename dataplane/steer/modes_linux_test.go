// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// load makes requests of addresses all along, and tells in the end how many were made and how many failed.
func (l *lab) load(addresses ...netip.Addr) (stop func() (made, failed int64)) {
	var made, failed atomic.Int64
	quit := make(chan struct{})
	var clients sync.WaitGroup
	for _, a := range addresses {
		clients.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				made.Add(1)
				if word, err := dial(l.client, a, 80, testkit.Patience); err != nil || word != "pod" {
					l.t.Logf("%s: %q, %v", a, word, err)
					failed.Add(1)
				}
			}
		})
	}
	testkit.Until(l.t, "the first requests", func() bool { return made.Load() > int64(2*len(addresses)) })
	return func() (int64, int64) {
		so := made.Load()
		testkit.Until(l.t, "the last requests", func() bool { return made.Load() > so+int64(2*len(addresses)) })
		close(quit)
		clients.Wait()
		return made.Load(), failed.Load()
	}
}

func TestModesChangeWithoutAGapAndWithHysteresis(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	o := l.options()
	o.RulesMax = 8
	s := l.steerWith(o)
	l.apply(s, wanted(vip4, vip6))
	requests := l.load(vip4, vip6)
	for _, step := range []struct {
		addresses int
		marked    bool
	}{{8, false}, {9, true}, {7, true}, {6, false}, {8, false}, {30, true}, {1, false}} {
		l.apply(s, wanted(append(many(vip4, step.addresses), many(vip6, step.addresses)...)...))
		for _, family := range []string{"-4", "-6"} {
			rules := l.node.Run("ip", family, "rule")
			each := strings.Count(rules, "lookup 101 proto 83")
			if marked := strings.Contains(rules, "fwmark 0x1000/0x1000 lookup 101"); marked != step.marked || !marked && each != step.addresses || marked && each != 1 {
				t.Errorf("%d addresses: by mark: %v, %d rules to table 101", step.addresses, marked, each)
			}
		}
	}
	if made, failed := requests(); failed > 0 {
		t.Errorf("%d of %d requests failed", failed, made)
	}
}

// Established connections outlive restarts of the agent and changes of mode.
func TestAgentRestartsAreNotNoticed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.steer()
	l.apply(s, wanted(vip4, vip6))
	requests := l.load(vip4, vip6)
	before := rulesOf(l.node)
	for range 10 {
		s.Close()
		s = l.steer()
		l.apply(s, wanted(vip4, vip6))
	}
	if after := rulesOf(l.node); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	if made, failed := requests(); failed > 0 {
		t.Errorf("%d of %d requests failed", failed, made)
	}
}
