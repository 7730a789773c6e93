// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"
	"time"
)

func TestOverwrittenStatusIsWrittenBackAtOnceButNotForEver(t *testing.T) {
	var p pace
	now := noon
	var waits []time.Duration
	slowed := 0
	for range 12 {
		d, _ := p.wait(1, now)
		waits = append(waits, d)
		now = now.Add(d)
		if p.wrote(1, now) {
			slowed++
		}
	}
	want := "[0s 0s 0s 0s 1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s]"
	if got := fmt.Sprint(waits); got != want || slowed != 1 {
		t.Errorf("waits %s, slowed down %d times, want %s", got, slowed, want)
	}
	if d, overwritten := p.wait(2, now); d != 0 || overwritten {
		t.Error("what is new waits, too")
	}
	p = pace{}
	p.wrote(1, noon)
	p.wrote(1, noon)
	p.wrote(1, noon)
	p.wrote(1, noon)
	if d, _ := p.wait(1, noon.Add(11*time.Minute)); d != 0 || p.rewrites != 0 {
		t.Error("what was long ago is not forgotten")
	}
}

func TestDigestTellsContentNotTime(t *testing.T) {
	b, s := newBook(t), newServed("web", "LoadBalancer", "")
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	a := Project(b.Read(), nil, []*Seen{s.seen()}, ours, noon)[0]
	later := Project(b.Read(), nil, []*Seen{s.seen()}, ours, noon.Add(time.Hour))[0]
	if a.digest() != later.digest() {
		t.Error("the time makes a difference")
	}
	none := Write{}
	if none.digest() == a.digest() || none.digest() == 0 {
		t.Error("nothing looks like something, or like never written")
	}
}

func TestEventsOfOneServiceAreLimited(t *testing.T) {
	var a allowance
	n := 0
	for range 100 {
		if a.take(noon) {
			n++
		}
	}
	if n != eventBurst || !a.take(noon.Add(eventEvery)) || a.take(noon.Add(eventEvery)) {
		t.Errorf("%d at once", n)
	}
}
