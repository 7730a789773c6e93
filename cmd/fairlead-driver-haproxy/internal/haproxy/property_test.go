// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/testkit"
)

// Whatever is asked in whatever order, while HAProxy restarts, answers get lost, the driver is killed and others change what is
// theirs and ours: servers of others are as the others left them, Fail changed nothing, Succ is so, and after everything was asked
// once more ours are exactly those that were asked for (lbcf §3.10, §3.11, §3.14).
func TestPropertyOursAreAsAskedAndOthersAsTheyWere(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		w := newHistory(t)
		defer os.RemoveAll(w.dir)
		defer func() { w.close() }()
		t.Repeat(map[string]func(*rapid.T){
			"ensure":          w.ensure,
			"deregister":      w.deregister,
			"together":        w.together,
			"looks-get-old":   func(*rapid.T) { clear(w.driver.seen) },
			"others-add":      w.othersAdd,
			"others-change":   w.othersChange,
			"hands-on-ours":   w.handsOnOurs,
			"connect":         w.connect,
			"haproxy-restart": w.restart,
			"driver-killed":   func(*rapid.T) { w.reopen() },
			"time-passes":     func(t *rapid.T) { w.model.now += time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second },
			"":                w.check,
		})
		w.heal()
	})
}

var (
	someBackends  = []string{"web", "api"}
	someAddresses = []string{"192.0.2.1:80", "192.0.2.1:81", "[2001:db8::1]:80"}
)

// history is what a test knows of one run: its own account of what was asked, and of what others have.
type history struct {
	t      *rapid.T
	dir    string
	model  *model
	driver *Driver
	book   *Book
	// last is what was asked last for a server. A nil wish is a deregistration.
	last map[key]*asked
	// others is what others have, as in model.picture.
	others map[string]string
	faults []fault
}

type asked struct {
	wish *wish
	// sure: the answer was Succ, and no hand touched the server since.
	sure bool
}

func newHistory(t *rapid.T) *history {
	dir, err := os.MkdirTemp("", "haproxy-driver-")
	if err != nil {
		t.Fatal(err)
	}
	w := &history{t: t, dir: dir, model: newModel(), last: map[key]*asked{}, others: map[string]string{}}
	w.model.fault = func() fault {
		if len(w.faults) == 0 {
			return fine
		}
		next := w.faults[0]
		w.faults = w.faults[1:]
		return next
	}
	for _, name := range []string{"web/static", "web/fl-of-somebody", "api/static"} { // one has the address of a pod
		w.model.servers[name] = &served{address: netip.MustParseAddrPort(someAddresses[0]), weight: 10, configured: true}
		w.others[name] = w.model.picture()[name]
	}
	w.open()
	return w
}

func (w *history) open() {
	book, err := OpenBook(filepath.Join(w.dir, "servers.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.book = book
	w.driver = New(Options{Runtime: w.model, Book: book, Mark: DefaultMark, Drain: 10 * time.Second, Log: slog.New(slog.DiscardHandler)})
}

// reopen is a driver that was killed and started again: it has nothing but its file.
func (w *history) reopen() {
	w.close()
	w.open()
}

func (w *history) close() {
	if err := w.book.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func drawKey(t *rapid.T) key {
	return key{rapid.SampledFrom(someBackends).Draw(t, "backend"), netip.MustParseAddrPort(rapid.SampledFrom(someAddresses).Draw(t, "address"))}
}

func drawWish(t *rapid.T) wish {
	return wish{
		weight: rapid.SampledFrom([]int{0, 1, 256}).Draw(t, "weight"), maxConn: rapid.SampledFrom([]int{0, 5}).Draw(t, "maxconn"),
		interval: rapid.SampledFrom([]time.Duration{0, 0, time.Second, 2500 * time.Millisecond}).Draw(t, "interval"),
	}
}

// drawFaults says what befalls the next lines: mostly nothing.
func (w *history) drawFaults(t *rapid.T) {
	w.faults = rapid.SliceOfN(rapid.SampledFrom([]fault{fine, fine, fine, fine, unreachable, deaf, mute, halfway, reluctant, unwilling}), 0, 3).Draw(t, "faults")
}

func request(k key, w wish, dryRun bool) webhook.BackendRequest {
	parameters := webhook.Map{"weight": fmt.Sprint(w.weight), "maxconn": fmt.Sprint(w.maxConn)}
	if w.interval > 0 {
		parameters["check"], parameters["interval"] = "true", w.interval.String()
	}
	return webhook.BackendRequest{
		Attempt: webhook.Attempt{DryRun: dryRun}, LBInfo: webhook.Map{"backend": k.backend}, BackendAddr: k.address.String(), Parameters: parameters,
	}
}

// judge holds an answer to what it means.
func (w *history) judge(t *rapid.T, k key, want *wish, dryRun bool, before map[string]string, a webhook.Answer, err error) {
	w.faults = nil
	changed := !maps.Equal(before, w.model.picture())
	switch {
	case dryRun && changed:
		t.Fatalf("a dry run changed %v to %v", before, w.model.picture())
	case dryRun:
		return
	case err == nil && a.Status == webhook.Fail:
		if changed {
			t.Fatalf("Fail (%s) although it changed %v to %v", a.Msg, before, w.model.picture())
		}
		return
	}
	w.last[k] = &asked{wish: want, sure: err == nil && a.Status == webhook.Succ}
}

func (w *history) ensure(t *rapid.T) {
	k, dryRun := drawKey(t), rapid.IntRange(0, 9).Draw(t, "dry") == 0
	want := drawWish(t)
	w.drawFaults(t)
	before := w.model.picture()
	a, err := w.driver.EnsureBackend(t.Context(), request(k, want, dryRun))
	w.judge(t, k, &want, dryRun, before, a.Answer, err)
}

func (w *history) deregister(t *rapid.T) {
	k, dryRun := drawKey(t), rapid.IntRange(0, 9).Draw(t, "dry") == 0
	w.drawFaults(t)
	before := w.model.picture()
	a, err := w.driver.DeregisterBackend(t.Context(), request(k, wish{}, dryRun))
	w.judge(t, k, nil, dryRun, before, a, err)
}

func (w *history) othersAdd(t *rapid.T) {
	name := rapid.SampledFrom(someBackends).Draw(t, "backend") + "/" + rapid.SampledFrom([]string{"added", "fl-added"}).Draw(t, "name")
	w.model.servers[name] = &served{address: netip.MustParseAddrPort(rapid.SampledFrom(someAddresses).Draw(t, "address"))}
	w.others[name] = w.model.picture()[name]
}

func (w *history) othersChange(t *rapid.T) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.others))).Draw(t, "name")
	s := w.model.servers[name]
	s.weight, s.admin = rapid.IntRange(0, 256).Draw(t, "weight"), rapid.SampledFrom([]int{0, forcedMaintenance, forcedDrain}).Draw(t, "admin")
	w.others[name] = w.model.picture()[name]
}

// handsOnOurs is somebody who changes a server of ours, or deletes it.
func (w *history) handsOnOurs(t *rapid.T) {
	k := drawKey(t)
	name := ours(k)
	s := w.model.servers[name]
	if s == nil {
		t.Skip("it is not there")
	}
	if rapid.Bool().Draw(t, "delete") {
		delete(w.model.servers, name)
	} else {
		s.weight, s.admin = rapid.IntRange(0, 256).Draw(t, "weight"), rapid.SampledFrom([]int{0, forcedMaintenance, forcedDrain}).Draw(t, "admin")
		s.address = netip.MustParseAddrPort(rapid.SampledFrom(someAddresses).Draw(t, "moved-to"))
	}
	if w.last[k] != nil {
		w.last[k].sure = false
	}
}

func (w *history) connect(t *rapid.T) {
	if s := w.model.servers[ours(drawKey(t))]; s != nil && s.admin == 0 {
		s.sessions = 3
	}
}

// restart is HAProxy that starts anew. The driver notices, perhaps with mishaps, which it gets over by itself.
func (w *history) restart(t *rapid.T) {
	w.model.restart()
	for name := range w.others {
		if w.model.servers[name] == nil {
			delete(w.others, name) // its owner's business
		}
	}
	w.drawFaults(t)
	for range 4 {
		if err := w.driver.putBack(t.Context()); err == nil {
			w.faults = nil
			return
		}
	}
	t.Fatal("it does not get over mishaps")
}

// check holds what is there to the account.
func (w *history) check(t *rapid.T) {
	have := w.model.picture()
	for name, want := range w.others {
		if have[name] != want {
			t.Fatalf("%s of others is %q, was left as %q", name, have[name], want)
		}
	}
	mine := map[string]bool{}
	for k, a := range w.last {
		mine[ours(k)] = true
		if want := pictureOf(k, a.wish); a.sure && have[ours(k)] != want {
			t.Fatalf("%s is %q, was asked as %q", ours(k), have[ours(k)], want)
		}
	}
	for name := range have {
		if _, ok := w.others[name]; !ok && !mine[name] {
			t.Fatalf("nobody asked for %s", name)
		}
	}
	if len(w.model.mistakes) > 0 {
		t.Fatalf("HAProxy does not know %q", w.model.mistakes)
	}
}

// heal asks for everything once more, as callers do until they hear Succ.
func (w *history) heal() {
	for k, a := range w.last {
		for tries := 0; ; tries++ {
			var answer webhook.Answer
			var err error
			if a.wish != nil {
				var e webhook.EnsureBackendResponse
				e, err = w.driver.EnsureBackend(w.t.Context(), request(k, *a.wish, false))
				answer = e.Answer
			} else {
				answer, err = w.driver.DeregisterBackend(w.t.Context(), request(k, wish{}, false))
			}
			if err == nil && answer.Status == webhook.Succ {
				a.sure = true
				break
			}
			if tries == 20 {
				w.t.Fatalf("%s: still %v, %v", ours(k), answer, err)
			}
			w.model.now += time.Second
			if s := w.model.servers[ours(k)]; s != nil && tries == 10 && a.wish != nil {
				s.sessions = 0 // what has connections is not replaced
			}
		}
	}
	w.check(w.t)
	// And a driver that starts now has nothing to do.
	w.reopen()
	before := w.model.picture()
	if err := w.driver.putBack(w.t.Context()); err != nil || !maps.Equal(before, w.model.picture()) {
		w.t.Fatalf("putting back changed %v to %v, error %v", before, w.model.picture(), err)
	}
}

// ours is what our server is called in the model: the rule of docs/drivers.md in other words.
func ours(k key) string {
	return k.backend + "/fl-" + strings.NewReplacer("[", "", "]", "").Replace(k.address.Addr().String()) + "_" + fmt.Sprint(k.address.Port())
}

func pictureOf(k key, w *wish) string {
	if w == nil {
		return ""
	}
	picture := fmt.Sprintf("%s weight %d maxconn %d admin 0", k.address, w.weight, w.maxConn)
	if w.interval > 0 {
		picture += fmt.Sprintf(" checked %d", w.interval.Milliseconds())
	}
	return picture
}
