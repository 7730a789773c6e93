// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm"
)

// crowd is a record with n Services that are announced, and what the API server shows of them.
func crowd(b *testing.B, n int) (*book, map[fsm.ServiceID]*served) {
	book, shown := newBook(b), map[fsm.ServiceID]*served{}
	for i := range n {
		name := fmt.Sprintf("web%d", i)
		book.service(b, "default/"+name)
		book.allocate(b, "default/"+name, address(i))
		book.route(b, address(i), "n1", "n2")
		shown[fsm.ServiceID("default/"+name)] = newServed(name, corev1.ServiceTypeLoadBalancer, "")
	}
	book.acknowledge(b, "n1", "n2")
	book.announce(b)
	for _, s := range shown {
		one(book, s, nil, ours, noon)
	}
	return book, shown
}

func address(i int) string { return fmt.Sprintf("198.18.%d.%d", i/250, i%250) }

// One endpoint that moves among 5,000 Services: who is concerned, and what is to be written.
func BenchmarkOneChangeOf5000(b *testing.B) {
	book, shown := crowd(b, 5000)
	before := book.Read()
	i := 0
	for b.Loop() {
		b.StopTimer()
		i++
		book.route(b, address(i%5000), "n1", fmt.Sprintf("n%d", 2+i%2))
		now := book.Read()
		b.StartTimer()
		concerned, all := scan(before, now)
		if all || len(concerned) > 2 {
			b.Fatalf("%d concerned, all %v", len(concerned), all)
		}
		for id := range concerned {
			project(now, nil, shown[id].seen(), ours, noon)
		}
		before = now
	}
}

// All 5,000 at once, as a new leader looks at them.
func BenchmarkAllOf5000(b *testing.B) {
	book, shown := crowd(b, 5000)
	var current []*Seen
	for _, s := range shown {
		current = append(current, s.seen())
	}
	for b.Loop() {
		if ws := Project(book.Read(), nil, current, ours, noon); len(ws) > 0 {
			b.Fatalf("%d to write", len(ws))
		}
	}
}
