// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/heap"
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

// What a member that leads keeps of each of 5,000 Services that are announced, beside the record: what was last shown of it, and what people
// were told.
func BenchmarkKept(b *testing.B) {
	const n = 5000
	book, shown := crowd(b, n)
	for b.Loop() {
		before := heap.InUse()
		store := NewStore()
		p, err := New(Config{Record: book, Store: store, API: nowhere{}, Waiting: func() []Explanation { return nil }, Clock: clock.RealClock{},
			Log: slog.New(slog.DiscardHandler), Instance: "n1", Options: ours})
		if err != nil {
			b.Fatal(err)
		}
		for range 2 { // as listed, and after a change
			for _, s := range shown {
				store.Set(sent(b, s.object()))
			}
		}
		r := p.newRun()
		r.readStore(noon)
		r.readRecord(noon)
		r.dispatch(b.Context(), noon.Add(time.Minute))
		r.tellAll(noon.Add(time.Minute))
		if len(r.work) != n || r.inFlight > 0 {
			b.Fatal(len(r.work), r.inFlight)
		}
		b.ReportMetric(float64(heap.InUse()-before)/n, "B/Service")
		runtime.KeepAlive(r)
	}
}

// nowhere is an API server that is not there.
type nowhere struct{ API }

func (nowhere) Tell(context.Context, *eventsv1.Event) error { return errors.New("nowhere") }

// sent gives a Service as it comes out of the decoder, which shares nothing with others.
func sent(b *testing.B, o *corev1.Service) *corev1.Service {
	raw, err := o.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	out := new(corev1.Service)
	if err := out.Unmarshal(raw); err != nil {
		b.Fatal(err)
	}
	return out
}
