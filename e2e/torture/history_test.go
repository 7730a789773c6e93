// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"fairlead.io/fairlead/sim/check"
)

// call is what a client asked of a register, and what it was told.
type call struct {
	client int
	key    string
	put    bool
	value  string // put, or got
	began  time.Duration
	ended  time.Duration
	told   told
	by     string // who was asked last
	why    string // of what is not done
}

// told is what a client knows of the end of a call.
type told string

const (
	done    told = "done"
	unknown told = "unknown" // a put may take effect at any time from its beginning on, or never
	refused told = "refused" // a put that surely was not made
)

// history is what clients were told, in the time of one clock.
type history struct {
	began time.Time

	mu    sync.Mutex
	calls []call
}

func newHistory() *history { return &history{began: time.Now()} }

// now is the time of the history's clock: it orders what clients see, and is no bound of anything.
func (h *history) now() time.Duration { return time.Since(h.began) }

func (h *history) add(c call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// restore puts calls back that were taken.
func (h *history) restore(calls []call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(calls, h.calls...)
}

// take gives all calls and forgets them.
func (h *history) take() []call {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

// undecided is how long the search for an order of one register's calls may take. None that was found by then is told as such.
const undecided = time.Minute

// judge tells what no order of calls explains, by register, and how many calls it looked at.
func judge(calls []call) (wrong []string, looked int) {
	keys := map[string][]call{}
	for _, c := range calls {
		keys[c.key] = append(keys[c.key], c)
	}
	for _, key := range slices.Sorted(keysOf(keys)) {
		ops := operations(keys[key])
		looked += len(ops)
		result, info := porcupine.CheckOperationsVerbose(check.RegisterModel(), ops, undecided)
		switch result {
		case porcupine.Illegal:
			wrong = append(wrong, fmt.Sprintf("no order of reads and writes explains what clients were told of register %s, about:\n%s", key, listed(around(keys[key], info))))
		case porcupine.Unknown:
			wrong = append(wrong, fmt.Sprintf("no order of %d calls about register %s was found in %v, and none was ruled out", len(ops), key, undecided))
		}
	}
	return wrong, looked
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// operations are calls about one register as porcupine takes them. What was refused has no effect. A put whose outcome is unknown and whose
// value nobody got may be taken for one that never took effect: an order with it is one without it, too.
func operations(calls []call) []porcupine.Operation {
	got := map[string]bool{}
	for _, c := range calls {
		if !c.put && c.told == done {
			got[c.value] = true
		}
	}
	var ops []porcupine.Operation
	alone := -1 // a call without an end is its client's last one to porcupine; the client goes on as another
	for _, c := range calls {
		if c.told == refused || c.told == unknown && (!c.put || !got[c.value]) {
			continue
		}
		op := porcupine.Operation{
			ClientId: c.client, Input: check.RegisterCall{Put: c.put, Value: c.value}, Output: c.value,
			Call: int64(c.began), Return: int64(c.ended),
		}
		if c.told == unknown {
			op.ClientId, op.Return = alone, math.MaxInt64
			alone--
		}
		ops = append(ops, op)
	}
	return ops
}

// shown is how many calls before and after the first one that nothing explains are told; all of them are among the logs.
const shown = 12

// around are the calls about where the longest order ends that explains some.
func around(calls []call, info porcupine.LinearizationInfo) []call {
	explained := map[string]int{} // calls by what tells them apart
	id := func(client int, put bool, value string, began int64) string {
		return fmt.Sprint(client, put, value, began)
	}
	for _, orders := range info.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) < len(explained) {
				continue
			}
			explained = map[string]int{}
			for _, op := range order {
				asked := op.Input.(check.RegisterCall)
				explained[id(max(op.ClientId, -1), asked.Put, op.Output.(string), op.Call)]++
			}
		}
	}
	calls = slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.told == refused || c.told == unknown && !c.put })
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.began, b.began) })
	first := slices.IndexFunc(calls, func(c call) bool {
		return c.told == done && explained[id(c.client, c.put, c.value, int64(c.began))] == 0
	})
	return calls[max(0, first-shown):min(len(calls), first+shown)]
}

// listed are calls for whoever looks for what went wrong.
func listed(calls []call) string {
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.began, b.began) })
	var b strings.Builder
	for _, c := range calls {
		do := "get"
		if c.put {
			do = "put"
		}
		fmt.Fprintf(&b, "  %9.4fs..%9.4fs client %d by %s: %s %q %s %s\n", c.began.Seconds(), c.ended.Seconds(), c.client, c.by, do, c.value, c.told, c.why)
	}
	return b.String()
}
