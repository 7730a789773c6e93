// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// book is a record that tests write.
type book struct{ *fsm.State }

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newBook(t fataler) *book {
	b := &book{fsm.New()}
	b.do(t, &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat},
		&fsm.ReportMember{Server: "m1", Name: "m1", Run: "r1", Format: fsm.NewestFormat},
		&fsm.PutDriver{Driver: fsm.Driver{Name: "shop/clb", URL: "http://192.0.2.9"}})
	return b
}

// try commits commands; those that are refused change nothing.
func (b *book) try(t fataler, commands ...fsm.Command) (refused error) {
	t.Helper()
	for _, c := range commands {
		if err := fsmtest.Try(t, b.State, c).Err(); err != nil {
			refused = fmt.Errorf("%T: %w", c, err)
		}
	}
	return refused
}

func (b *book) do(t fataler, commands ...fsm.Command) {
	t.Helper()
	if err := b.try(t, commands...); err != nil {
		t.Fatal(err)
	}
}

// call is an operation of which the outcome is given.
func (b *book) call(t fataler, begin fsm.BeginOperation, finish fsm.FinishOperation) error {
	t.Helper()
	begin.Deadline = time.Second
	if err := b.try(t, &begin); err != nil {
		return err
	}
	for _, op := range fsm.List[*fsm.Operation](b.Read(), fsm.TableOperations) {
		if op.Open {
			finish.Subject, finish.Attempt = op.Subject, op.Attempt
			finish.Settled = true
			return b.try(t, &finish)
		}
	}
	t.Fatal("no operation is open")
	return nil
}

func (b *book) must(t fataler, begin fsm.BeginOperation, finish fsm.FinishOperation) {
	t.Helper()
	if err := b.call(t, begin, finish); err != nil {
		t.Fatal(err)
	}
}

func succeeded(message string, kvs ...fsm.KV) fsm.FinishOperation {
	return fsm.FinishOperation{Result: fsm.ResultSucceeded, Message: message, Returned: kvs}
}

func refusedWith(message string) fsm.FinishOperation {
	return fsm.FinishOperation{Result: fsm.ResultFailed, Refused: true, Message: message}
}

func running(message string) fsm.FinishOperation {
	return fsm.FinishOperation{Result: fsm.ResultRunning, Message: message}
}

// name is one like those of BackendRecords.
func name(i int) fsm.BindingID { return fsm.BindingID(fmt.Sprintf("shop/%032x", i)) }

const edge = fsm.BalancerID("LoadBalancer/shop/edge/lb-uid")

// edgeReady has a load balancer that backends can be on.
func (b *book) edgeReady(t fataler) {
	t.Helper()
	b.do(t, &fsm.PutLoadBalancer{ID: edge, Driver: "shop/clb", Spec: kv("vip", "192.0.2.1"), Attributes: kv("algo", "rr"), UID: "lb-uid"})
	b.must(t, fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: edge}, succeeded("made", kv("vip", "192.0.2.1")...))
}

func kv(pairs ...string) (out []fsm.KV) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, fsm.KV{Key: pairs[i], Value: pairs[i+1]})
	}
	return out
}

// pod wants a pod on edge.
func pod(i int, parameters ...string) *fsm.PutBinding {
	return &fsm.PutBinding{
		ID: name(i), Balancer: edge, Owner: "BackendGroup/shop/web/g-uid", Parameters: kv(parameters...), Attributes: kv("algo", "rr"),
		Backend: fsm.Backend{Kind: "Pod", Name: fmt.Sprintf("web-%d", i), UID: fmt.Sprint(i), Port: 8080, Protocol: "TCP", Target: fmt.Sprintf("10.0.0.%d", i)},
	}
}

func (b *book) addressed(t fataler, i int) {
	t.Helper()
	b.do(t, b.answer(i, fmt.Sprintf("10.0.0.%d:8080", i), "", false))
}

// answer is what a driver says that is asked for the address of a pod.
func (b *book) answer(i int, address, message string, failed bool) *fsm.SetBindingAddress {
	c := &fsm.SetBindingAddress{ID: name(i), Address: address, Message: message, Failed: failed}
	if x, ok := fsm.Get[*fsm.Binding](b.Read(), fsm.TableBindings, string(name(i))); ok {
		c.UID = x.UID
	}
	return c
}

func (b *book) ensured(t fataler, i int, message string) {
	t.Helper()
	b.must(t, fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: name(i)}, succeeded(message, kv("memberID", fmt.Sprint(i))...))
}

func (b *book) deregistered(t fataler, i int) {
	t.Helper()
	b.must(t, fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: name(i)}, succeeded(""))
}

// bubbleClock is the time of a synctest bubble.
type bubbleClock struct{}

func (bubbleClock) Now() time.Time                         { return time.Now() }
func (bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func config(b *book, s *server) Config {
	return Config{Record: b, Objects: s, API: s, Clock: bubbleClock{}, Log: quiet()}
}

// lead runs a term until stop is called. It is to be called in a bubble.
func lead(t fataler, c Config) (stop func()) {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { m.Run(ctx); close(ended) }()
	return func() {
		cancel()
		<-ended
	}
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *server) record(i int) *v1beta1.BackendRecord {
	o, _ := s.get(recordKey(name(i))).(*v1beta1.BackendRecord)
	return o
}

// verbs lists the writes of objects of a kind.
func (s *server) verbs(kind Kind) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, w := range s.writes {
		if w.Kind == kind {
			out = append(out, string(w.Verb))
		}
	}
	return strings.Join(out, " ")
}

// reasons lists the Events on objects of a kind.
func (s *server) reasons(kind Kind) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		if e.InvolvedObject.Kind == string(kind) {
			out = append(out, e.Reason)
		}
	}
	return strings.Join(out, " ")
}
