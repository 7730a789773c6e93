// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// overheardEvery is how often it is looked for programs at proxy ports.
const overheardEvery = time.Minute

// Listening gives those ports of Services at which programs of the host listen themselves.
type Listening func(services []*desired.Service) ([]desired.Port, error)

// overheard tells of programs that listen at proxy ports: at tunnel addresses these come first, and a program that expects its clients
// there waits for ever (balancing §13.6).
type overheard struct {
	listening Listening // nil: nobody looks
	log       *slog.Logger
	ports     prometheus.Gauge

	mu       sync.Mutex
	services []*desired.Service // whose ports are proxy ports
	told     []desired.Port
	failed   bool
}

func newOverheard(listening Listening, log *slog.Logger, metrics prometheus.Registerer) (*overheard, error) {
	o := &overheard{listening: listening, log: log, ports: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fairlead_tunnel_overheard_ports", Help: "Proxy ports at which a program of this host listens itself.",
	})}
	if metrics == nil {
		return o, nil
	}
	if err := metrics.Register(o.ports); err != nil {
		return nil, fmt.Errorf("register metrics of proxy ports: %w", err)
	}
	return o, nil
}

// serve says what proxy ports there are from now on.
func (o *overheard) serve(services []*desired.Service) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.services = services
}

// run looks until ctx ends.
func (o *overheard) run(ctx context.Context) error {
	if o.listening == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	for {
		o.look()
		select {
		case <-time.After(overheardEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look tells what it has not told yet.
func (o *overheard) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	ports, err := o.listening(o.services)
	if err != nil {
		if !o.failed {
			o.log.Warn("not known whether programs listen at proxy ports", "err", err)
		}
		o.failed = true
		return
	}
	o.failed = false
	o.ports.Set(float64(len(ports)))
	if !slices.Equal(ports, o.told) && len(ports) > 0 {
		o.log.Warn("programs of this host listen at proxy ports", "ports", portsOf(ports),
			"means", "clients of the tunnel's address get to the policy's pods, not to the program", "remedy", "choose another port in toPorts, or for the program")
	}
	o.told = ports
}

func portsOf(ports []desired.Port) string {
	var out []string
	for _, p := range ports {
		out = append(out, fmt.Sprint(fsm.Port{Protocol: fsm.Protocol(p.Protocol), Number: p.Number}))
	}
	return strings.Join(out, " ")
}
