// SPDX-License-Identifier: Apache-2.0

package outside_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/outside/balancer"
	"fairlead.io/fairlead/internal/testkit"
)

const (
	ensure     = webhook.EnsureBackend
	deregister = webhook.DeregisterBackend
)

// having has all calls of a webhook go wrong in one way.
func having(n webhook.Name, f balancer.Fault) func(balancer.Call) balancer.Fault {
	return func(c balancer.Call) balancer.Fault {
		if c.Webhook == n {
			return f
		}
		return balancer.None
	}
}

func failing(n webhook.Name) func(balancer.Call) balancer.Fault { return having(n, balancer.Fail) }

// hangs has every other call of a webhook hang, and counts those. The others fail: a driver that answers nothing is left alone, and how many calls hang
// before is an affair of the machine.
func (s *stage) hangs(n webhook.Name) (hanging func() int) {
	var calls, hang atomic.Int64
	s.driver.Faults(func(c balancer.Call) balancer.Fault {
		switch {
		case c.Webhook != n:
			return balancer.None
		case calls.Add(1)%2 == 0:
			return balancer.Fail
		}
		hang.Add(1)
		return balancer.Hang
	})
	return func() int { return int(hang.Load()) }
}

// stays waits until just these backends are on the load balancer, and stay after everything late has come.
func (s *stage) stays(numbers ...int) {
	s.t.Helper()
	s.bound(numbers...)
	s.driver.Quiet()
	s.bound(numbers...)
}

// LBCF leaked 100 of 100: pods that are deleted while their ensure hangs past its timeout, and takes effect then, do not
// stay bound.
func TestEnsureThatTakesEffectLateIsTakenBack(t *testing.T) {
	const n = 100
	s := newStage(t, kubetest.Options{NoControllers: true})
	hanging := s.hangs(ensure)
	s.driver.Late(time.Second)
	s.balance("2s")
	s.run(upTo(n)...)
	s.Eventually("ensures that hang", func() error { return atLeast(hanging(), n/2) })
	s.remove(upTo(n)...)
	s.driver.Faults(nil)
	s.stays()
	s.lawful()
}

// LBCF dropped 102 of 300 live ones: pods that are replaced by others with the same addresses, with the group killed in
// between, are all bound within seconds, and never one is taken off that is live.
func TestAddressesThatComeBackStayBound(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 60
	}
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.run(upTo(n)...)
	s.balance("10s")
	s.bound(upTo(n)...)
	for _, replaced := range []struct {
		pods int
		down bool // the group is, meanwhile
	}{{n, true}, {n / 3, true}, {n, false}} {
		if replaced.down {
			s.killAll()
		}
		s.remove(upTo(replaced.pods)...)
		s.run(upTo(replaced.pods)...)
		if replaced.down {
			s.driver.Guard(func(string) bool { return true }) // all of them live by now
			s.startAll()
		}
		s.stays(upTo(n)...)
		s.Eventually("a binding for each pod, and no other", func() error { return s.bindings(n) })
		s.driver.Guard(nil)
	}
	s.lawful()
}

// LBCF lost 100 of 100: a deregistration that hangs and lands late while the address is bound anew does not win.
func TestDeregistrationThatLandsLateDoesNotWin(t *testing.T) {
	const n = 100
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.run(upTo(n)...)
	s.balance("2s")
	s.bound(upTo(n)...)
	s.driver.Late(3 * time.Second)
	hanging := s.hangs(deregister)
	s.remove(upTo(n)...)
	s.Eventually("deregistrations that hang", func() error { return atLeast(hanging(), n/2) })
	s.driver.Faults(nil)
	s.run(upTo(n)...)
	s.stays(upTo(n)...)
	s.Eventually("the last word", func() error {
		if on := s.driver.On(edge); len(on) != n {
			return atLeast(len(on), n)
		}
		return nil
	})
	s.lawful()
}

// With a driver that fails 30 % of its calls and hangs in 5 %, while pods come and go and the leader is killed ten times,
// the load balancer ends exactly right, and foreign servers are not touched.
func TestEverythingEndsRightWhileTheLeaderIsKilledTenTimes(t *testing.T) {
	n, kills := 1000, 10
	if testing.Short() {
		n, kills = 100, 3
	}
	s := newStage(t, kubetest.Options{NoControllers: true})
	random := testkit.Random(t)
	var drawing sync.Mutex
	bad := atomic.Bool{}
	bad.Store(true)
	s.driver.Late(time.Second)
	s.driver.Faults(func(balancer.Call) balancer.Fault {
		drawing.Lock()
		defer drawing.Unlock()
		switch draw := random.IntN(100); {
		case !bad.Load():
			return balancer.None
		case draw < 30:
			return balancer.Fail
		case draw < 35:
			return balancer.Hang
		}
		return balancer.None
	})
	s.driver.Foreign(edge, "192.0.2.200:80")
	s.balance("2s")
	s.run(upTo(n)...)
	there := upTo(n)
	for range kills {
		leader := s.Leader()
		leader.Kill()
		s.remove(there[:n/50]...)
		there = there[n/50:]
		leader.Start()
	}
	bad.Store(false)
	s.stays(there...)
	s.lawful("192.0.2.200:80")
}
