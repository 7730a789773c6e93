// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"
)

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
