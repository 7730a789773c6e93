// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

// endpointChanges is how many withdrawals are measured, and as many announcements.
const endpointChanges = 200

// endpointSizes are how many Services are there meanwhile.
var endpointSizes = []int{200, 5000}

// endpointToUpdate makes an endpoint unready and ready again, and takes the time from the API server's answer until a
// switch has read the UPDATE: of a withdrawal from all members, since it uses a path that any of them still announces;
// of an announcement from the first. Announcements wait for the node's acknowledgement. The figure is that of withdrawals
// with the most Services.
func endpointToUpdate(t *bench) figures {
	api := startAPI(t)
	l := lab.New(t, lab.Options{Steered: true, Log: "warn", Kubeconfig: api.Kubeconfig()})
	r := newReader(t, netip.MustParseAddr("127.0.0.9"), 65002)
	l.Manifests.Peer("reader", lab.ASN, r.asn, r.address().Addr(), r.address().Port())
	for n := 1; n <= apiNodes; n++ {
		l.Machine(n)
	}
	g := &group{Lab: l, t: t}
	watch := watchSlices(t, api)
	f := figures{detail: map[string]any{}}
	filled := 0
	for _, size := range endpointSizes {
		api.fill(filled, size)
		filled = size
		l.EventuallyWithin("every path at the switch", 5*time.Minute, func() error {
			want := size * apiNodes * len(l.Members)
			if routes, networks := countRoutes(l.Bird.Command("show route count")); routes != want || networks != size {
				return fmt.Errorf("%d routes for %d networks, want %d for %d", routes, networks, want, size)
			}
			return nil
		})
		l.EventuallyWithin("status of every Service", 10*time.Minute, func() error { return statusWritten(t, l.Leader()) })
		t.progressf("%d changes with %d Services", 2*endpointChanges, size)
		m := measurement{t: t, api: api, r: r, watch: watch, members: len(l.Members)}
		before, leader := g.usages(), l.Leader()
		stages := scrape(t, leader)
		begin := time.Now()
		m.run(size)
		detail := m.detail()
		detail["leader_stages"] = stagesBetween(stages, scrape(t, leader))
		detail["cpu_ms_per_change"] = cpuPerChange(before, g.usages(), 2*endpointChanges)
		detail["seconds"] = time.Since(begin).Seconds()
		f.detail[fmt.Sprintf("services_%d", size)] = detail
		f.samples = m.withdrawLast
	}
	f.detail["processes"], f.detail["api_processes"] = g.usages(), api.usages()
	return f
}

// measurement is of one size.
type measurement struct {
	t       *bench
	api     *apiCluster
	r       *reader
	watch   <-chan seenSlice
	members int

	withdrawFirst, withdrawLast, announceFirst, announceLast, watched []float64
}

func (m *measurement) run(size int) {
	for len(m.watch) > 0 { // what was made before
		<-m.watch
	}
	const stride = 37 // prime to both sizes: other services each time
	for n := range endpointChanges {
		i := n * stride % size
		first, last := m.one(i, false)
		m.withdrawFirst, m.withdrawLast = append(m.withdrawFirst, first), append(m.withdrawLast, last)
		first, last = m.one(i, true)
		m.announceFirst, m.announceLast = append(m.announceFirst, first), append(m.announceLast, last)
	}
}

// one makes one change, and gives the milliseconds until the first and until the last member's UPDATE was read. Less than
// none means that the UPDATE overtook the API server's answer.
func (m *measurement) one(i int, ready bool) (first, last float64) {
	prefix := fsm.HostPrefix(lab.VIP(i))
	updates := m.r.want(prefix)
	defer m.r.forget(prefix)
	at := m.api.change(i, ready)
	deadline := time.After(2 * soon)
	heard := map[netip.Addr]time.Time{}
	seen := false
	for len(heard) < m.members || !seen {
		select {
		case s := <-m.watch:
			if s.name == apiName(i) && !seen {
				seen = true
				m.watched = append(m.watched, milliseconds(s.at.Sub(at)))
			}
		case u := <-updates:
			if _, known := heard[u.speaker]; !known && u.withdrawn == !ready {
				heard[u.speaker] = u.at
			}
		case <-deadline:
			m.t.Fatal(fmt.Sprintf("%s ready=%t: heard of %d of %d members within %s", apiName(i), ready, len(heard), m.members, 2*soon))
		}
	}
	times := slices.SortedFunc(maps.Values(heard), time.Time.Compare)
	return milliseconds(times[0].Sub(at)), milliseconds(times[len(times)-1].Sub(at))
}

func (m *measurement) detail() map[string]any {
	return map[string]any{
		"withdraw_all_members_ms": spread(m.withdrawLast), "withdraw_first_member_ms": spread(m.withdrawFirst),
		"announce_first_member_ms": spread(m.announceFirst), "announce_all_members_ms": spread(m.announceLast),
		"api_watch_ms": spread(m.watched),
	}
}

func spread(samples []float64) map[string]float64 {
	s := slices.Sorted(slices.Values(samples))
	return map[string]float64{"n": float64(len(s)), "p50": quantile(s, 0.50), "p99": quantile(s, 0.99), "max": s[len(s)-1]}
}

// seenSlice is an EndpointSlice as another watcher of the API server sees it: the part of the time that is not ours.
type seenSlice struct {
	name string
	at   time.Time
}

func watchSlices(t *bench, api *apiCluster) <-chan seenSlice {
	ctx, cancel := context.WithCancel(context.Background())
	w, err := api.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	const room = 1 << 14 // all that are made at first, should nobody listen
	out, ended := make(chan seenSlice, room), make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			if s, ok := e.Object.(*discoveryv1.EndpointSlice); ok {
				select {
				case out <- seenSlice{s.Name, time.Now()}:
				case <-ctx.Done():
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		w.Stop()
		<-ended
	})
	return out
}

// statusWritten tells whether the leader still has status to write: each write is an event that it looks at again.
func statusWritten(t *bench, leader *lab.Member) error {
	const pending = "fairlead_status_pending"
	if n, ok := series(t, leader)[pending]; !ok || n > 0 {
		return fmt.Errorf("%s is %v (known: %t)", pending, n, ok)
	}
	return nil
}

// stageMetrics are the histograms of the leader that take part in a change.
var stageMetrics = []string{"fairlead_leader_endpoints_plan_seconds", "fairlead_leader_plan_seconds", "fairlead_raft_propose_seconds"}

// scrape reads sums and counts of those.
func scrape(t *bench, m *lab.Member) map[string]float64 {
	all, out := series(t, m), map[string]float64{}
	for _, metric := range stageMetrics {
		for _, part := range []string{metric + "_sum", metric + "_count"} {
			out[part] = all[part]
		}
	}
	return out
}

// series reads a member's metrics, summed up over their labels.
func series(t *bench, m *lab.Member) map[string]float64 {
	answer, err := http.Get("http://" + m.Address + ":7480/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			name, _, _ := strings.Cut(fields[0], "{")
			out[name] += number(fields[1])
		}
	}
	return out
}

// stagesBetween is how often each stage ran, and its mean.
func stagesBetween(before, after map[string]float64) map[string]any {
	out := map[string]any{}
	for _, metric := range stageMetrics {
		n := after[metric+"_count"] - before[metric+"_count"]
		if n > 0 {
			mean := (after[metric+"_sum"] - before[metric+"_sum"]) / n
			out[strings.TrimSuffix(strings.TrimPrefix(metric, "fairlead_"), "_seconds")] = map[string]float64{"n": n, "mean_ms": mean * 1000}
		}
	}
	return out
}

// cpuPerChange is the processor time that each process took for one change.
func cpuPerChange(before, after map[string]usage, changes float64) map[string]float64 {
	out := map[string]float64{}
	for name, u := range after {
		out[name] = (u.CPUSeconds - before[name].CPUSeconds) * 1000 / changes
	}
	return out
}
