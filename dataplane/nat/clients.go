// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How often and how much of the tables of clients is read, where the kernel does not count them itself.
const (
	clientsEvery = time.Minute
	// clientsMost elements, and then the rest of a set, are listed at a time: some 10 MB that pass by. Further sets
	// are for the next time.
	clientsMost = affinityClients
)

// remembered is the metric of how many clients are remembered by affinity.
type remembered struct {
	all, most prometheus.Gauge
	log       *slog.Logger

	mu     sync.Mutex
	counts map[string]int // by set, as of when it was looked at last
	after  string         // the set that was looked at last
}

func newRemembered(log *slog.Logger) *remembered {
	return &remembered{
		all: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_nat_affinity_clients", Help: "Clients that are remembered by affinity, all together.",
		}),
		most: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_nat_affinity_clients_most", Help: "Clients of the endpoint of a service port that remembers most.",
		}),
		log: log, counts: map[string]int{},
	}
}

// look counts the clients in sets: of all of them where the kernel counts, else of some, and of others the next time.
func (r *remembered) look(ctx context.Context, sets []string, count func(context.Context, []string, int) (map[string]int, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	there := map[string]bool{}
	for _, s := range sets {
		there[s] = true
	}
	maps.DeleteFunc(r.counts, func(s string, _ int) bool { return !there[s] })
	if len(sets) > 0 {
		slices.Sort(sets)
		first, _ := slices.BinarySearch(sets, r.after+"\x00")
		sets = append(slices.Clone(sets[first:]), sets[:first]...)
		counted, err := count(ctx, sets, clientsMost)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("clients with affinity not counted", "error", err)
		}
		for _, s := range sets {
			if n, ok := counted[s]; ok {
				r.counts[s], r.after = n, s
			}
		}
	}
	sum, most := 0, 0
	for _, n := range r.counts {
		sum, most = sum+n, max(most, n)
	}
	r.all.Set(float64(sum))
	r.most.Set(float64(most))
}

// countClients looks at the sets that packets fill with clients.
func (n *NAT) countClients(ctx context.Context) {
	n.mu.Lock()
	var sets []string
	for name, s := range n.sets {
		if s.Dynamic && name != setWays {
			sets = append(sets, name)
		}
	}
	n.mu.Unlock()
	n.metrics.clients.look(ctx, sets, n.edge.Clients)
}
