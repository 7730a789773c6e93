// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kube"
)

const allServices = "/api/v1/services"

// A list at any version, and a watch from there, come to what the server holds; late, doubled and merged events or not.
func TestPropertyAListAndAWatchFromThereAreTheState(t *testing.T) {
	paths := []string{allServices, "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/pods", "/apis/" + poolsOfMetalLB,
		"/api/v1/services?fieldSelector=metadata.name%3Ds1&x=", "/api/v1/namespaces/default/services"}
	harmless := []kube.Fault{kube.WatchDelay, kube.Duplicate, kube.Coalesce}
	testkit.Check(t, func(rt *rapid.T) {
		b := newCluster(t, rapid.Uint64().Draw(rt, "seed"))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "steps"), 0))
		type client struct {
			path  string
			watch *reply
			view
		}
		var clients []*client
		var ends []func()
		first := b.Version()
		for n := range rapid.IntRange(5, 60).Draw(rt, "length") {
			switch rapid.IntRange(0, 9).Draw(rt, "do") {
			case 0, 1:
				path := rapid.SampledFrom(paths).Draw(rt, "path")
				glue := "?"
				if path[len(path)-1] == '=' {
					glue = "&"
				}
				at := first + rapid.Uint64Range(0, b.Version()-first).Draw(rt, "version")
				list := b.ask(rt, "GET", fmt.Sprintf("%s%sresourceVersionMatch=Exact&resourceVersion=%d", path, glue, at), "").object(rt)
				if list.Metadata.ResourceVersion != strconv.FormatUint(at, 10) {
					rt.Fatalf("asked for %d: %+v", at, list)
				}
				watch := b.ask(rt, "GET", fmt.Sprintf("%s%swatch=true&allowWatchBookmarks=true&resourceVersion=%d", path, glue, at), "")
				clients = append(clients, &client{path, watch, viewOf(list)})
			case 2:
				if err := b.w.Run(b.w.Now() + time.Duration(rapid.IntRange(1, 3000).Draw(rt, "ms"))*time.Millisecond); err != nil {
					rt.Fatal(err)
				}
			case 3:
				ends = append(ends, b.Begin(rapid.SampledFrom(harmless).Draw(rt, "fault"), kube.Scope{}))
			default:
				b.step(t, random, n)
			}
		}
		for _, end := range ends {
			end()
		}
		if err := b.w.Run(b.w.Now() + 3*time.Minute); err != nil {
			rt.Fatal(err)
		}
		for _, c := range clients {
			c.take(rt, c.watch.events(rt))
			if now := viewOf(b.ask(rt, "GET", c.path, "").object(rt)); now.text() != c.text() {
				rt.Fatalf("%s: the watch shows\n%s\nthe server\n%s", c.path, c.text(), now.text())
			}
		}
		if len(b.refused) > 0 {
			rt.Fatalf("refused %+v", b.refused)
		}
	})
}

// Pages of a list are together the list at the version of the first, whatever happens meanwhile.
func TestPropertyPagesAreOneList(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		b := newCluster(t, rapid.Uint64().Draw(rt, "seed"))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "steps"), 0))
		for n := range 40 {
			b.step(t, random, n)
		}
		whole := b.ask(rt, "GET", "/api/v1/pods", "").object(rt)
		var paged shown
		for token := ""; ; {
			page := b.ask(rt, "GET", fmt.Sprintf("/api/v1/pods?limit=%d&continue=%s", rapid.IntRange(1, 5).Draw(rt, "limit"), token), "").object(rt)
			if page.Metadata.ResourceVersion != whole.Metadata.ResourceVersion {
				rt.Fatalf("page at %s of a list at %s", page.Metadata.ResourceVersion, whole.Metadata.ResourceVersion)
			}
			paged.Items = append(paged.Items, page.Items...)
			b.step(t, random, 1000+len(paged.Items))
			if token = page.Metadata.Continue; token == "" {
				break
			}
		}
		if viewOf(paged).text() != viewOf(whole).text() || len(paged.Items) != len(whole.Items) {
			rt.Fatalf("pages %s\nwhole %s", viewOf(paged).text(), viewOf(whole).text())
		}
	})
}

// Equal seeds give equal events and equal bytes, under every fault.
func TestPropertyEqualSeedsGiveEqualRuns(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		seed, steps := rapid.Uint64().Draw(rt, "seed"), rapid.Uint64().Draw(rt, "steps")
		faults := rapid.SliceOfN(rapid.SampledFrom(kube.Faults()), 0, 4).Draw(rt, "faults")
		run := func() (out []string) {
			b := newCluster(t, seed)
			b.w.Hear(func(e event.Stamped) { out = append(out, fmt.Sprintf("%+v", e)) })
			random := rand.New(rand.NewPCG(steps, 0))
			var replies []*reply
			var ends []func()
			for n := range 60 {
				b.step(t, random, n)
				switch {
				case n%9 == 0:
					replies = append(replies, b.ask(rt, "GET", allServices, ""))
				case n%10 == 0:
					replies = append(replies, b.ask(rt, "GET", fmt.Sprintf("%s?watch=true&resourceVersion=%d", allServices, b.Version()), "", "Accept", asProto))
				case n%13 == 0 && len(faults) > len(ends):
					ends = append(ends, b.Begin(faults[len(ends)], kube.Scope{Share: 0.7}))
				}
				if err := b.w.Run(b.w.Now() + 300*time.Millisecond); err != nil {
					rt.Fatal(err)
				}
			}
			for _, r := range replies {
				out = append(out, fmt.Sprint(r.status, r.ended, r.broken, r.body.String()))
			}
			return out
		}
		if a, b := run(), run(); !slices.Equal(a, b) {
			rt.Fatalf("%d and %d events that differ", len(a), len(b))
		}
	})
}

// What history tells of an object is what lists at each version showed.
func TestPropertyHistoryTellsWhatListsShowed(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		b := newCluster(t, rapid.Uint64().Draw(rt, "seed"))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "steps"), 0))
		there := map[time.Duration]bool{}
		for n := range 80 {
			b.step(t, random, n)
			for range 2 { // steps are between the times that are looked at
				_ = b.w.Run(b.w.Now() + 5*time.Millisecond) // nothing fails it
				if b.w.Now()%(10*time.Millisecond) != 0 {
					there[b.w.Now()] = b.Get("Service", "default", "s1") != nil
				}
			}
		}
		for at, is := range there {
			if b.Absent("Service", "default", "s1", at, at) == is {
				rt.Fatalf("at %v: there %v, history %+v", at, is, b.History("Service", "default", "s1"))
			}
		}
		from := time.Duration(rapid.IntRange(1, 40).Draw(rt, "from")) * 10 * time.Millisecond
		to := from + time.Duration(rapid.IntRange(0, 40).Draw(rt, "for"))*10*time.Millisecond
		absent := false
		for at, is := range there {
			absent = absent || !is && at >= from && at <= to
		}
		if absent && !b.Absent("Service", "default", "s1", from, to) {
			rt.Fatalf("absent between %v and %v", from, to)
		}
	})
}
