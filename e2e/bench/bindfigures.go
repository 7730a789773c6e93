// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"time"

	"fairlead.io/fairlead/e2e/outside/balancer"
)

const (
	bindPods    = 5000
	readyPods   = 1000
	readyTimes  = 200
	failingPods = 300
)

// bindAll makes 5,000 ready pods, then a BackendGroup of them, and takes the time until the last is on the load
// balancer of a driver that takes a while for each call.
func bindAll(latency time.Duration) func(t *bench) figures {
	return func(t *bench) figures {
		b := startBound(t, bindPods)
		b.driver.Latency(latency)
		b.settle() // to make so many pods keeps the machine busy for a while
		before := b.usages()
		writes := b.writes()
		begin := b.bind()
		took := b.all(bindPods, 5*time.Minute).Sub(begin)
		after := b.usages()
		rate := bindPods / took.Seconds()
		detail := map[string]any{"seconds": took.Seconds(), "latency_ms": milliseconds(latency), "processes_before": before, "processes": after}
		b.settle()
		detail["api_writes"] = written(writes, b.writes())
		return figures{samples: []float64{rate}, value: &rate, detail: detail}
	}
}

// settle waits until nothing is written to the API server any more.
func (b *bound) settle() {
	quiet, last := 0, ""
	b.EventuallyWithin("end of writing", 5*time.Minute, func() error {
		time.Sleep(200 * time.Millisecond)
		if now := fmt.Sprint(b.writes()); now != last {
			quiet, last = 0, now
		}
		if quiet++; quiet < 15 {
			return fmt.Errorf("written to within 3 s")
		}
		return nil
	})
}

// readyToBound makes single pods of 1,000 unready and ready again, and takes the time from the API server's answer
// until the driver has put it on.
func readyToBound(t *bench) figures {
	b := startBound(t, readyPods)
	b.bind()
	b.all(readyPods, 5*time.Minute)
	b.settle()
	t.progressf("%d pods become ready, one after the other", readyTimes)
	f := figures{detail: map[string]any{}}
	before := b.usages()
	const stride = 37 // prime to the number of pods: another one each time
	for n := range readyTimes {
		i := n * stride % readyPods
		b.setReady(i, false)
		b.EventuallyWithin("deregistration", soon, func() error {
			if _, on := b.driver.Entry(bindBalancer, bindBackend(i)); on {
				return fmt.Errorf("%s is on the load balancer", bindBackend(i))
			}
			return nil
		})
		next := b.next(bindBackend(i))
		at := b.setReady(i, true)
		select {
		case on := <-next:
			f.samples = append(f.samples, milliseconds(on.Sub(at)))
		case <-time.After(soon):
			t.Fatalf("%s is not on the load balancer within %s", bindBackend(i), soon)
		}
	}
	f.detail["cpu_ms_per_change"] = cpuPerChange(before, b.usages(), 2*readyTimes)
	return f
}

// writesPerPod counts the writes of Kubernetes objects while 1,000 pods are bound, per pod; Events apart; and those of half a
// minute in which nothing happens.
func writesPerPod(t *bench) figures {
	b := startBound(t, readyPods)
	before := b.writes()
	b.bind()
	b.all(readyPods, 5*time.Minute)
	b.settle()
	busy := written(before, b.writes())
	idle := b.writes()
	time.Sleep(30 * time.Second)
	still := written(idle, b.writes())
	value := 0.0
	for resource, n := range busy {
		if resource != "events" {
			value += n / readyPods
		}
	}
	return figures{samples: []float64{value}, value: &value, detail: map[string]any{"writes": busy, "writes_idle_30s": still}}
}

// bindFailing binds 300 pods through a driver that answers Fail to 30 % of all calls, and takes the seconds until the last
// is on.
func bindFailing(t *bench) figures {
	b := startBound(t, failingPods)
	b.driver.Faults(func(c balancer.Call) balancer.Fault {
		// Equal in every run, and as if at random: three in ten.
		if mix(c.Address, string(c.Webhook), c.Number)%10 < 3 {
			return balancer.Fail
		}
		return balancer.None
	})
	begin := b.bind()
	took := b.all(failingPods, 5*time.Minute).Sub(begin).Seconds()
	return figures{samples: []float64{took}, value: &took, detail: map[string]any{}}
}

// mix makes a number of what it is given (FNV-1a).
func mix(address, webhook string, number int) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(address + webhook + strconv.Itoa(number)) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h >> 17
}

// writes counts what the API server was asked to write so far by LBCF's kinds and Events.
func (b *bound) writes() map[string]float64 {
	return writes(b.t, b.api, func(group, resource string) bool { return group == "lbcf.tkestack.io" || resource == "events" })
}
