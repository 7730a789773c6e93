// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/e2e/kubetest"
)

// world is everything that stands. One goroutine changes it.
type world struct {
	o        Options
	dir      string
	logs     string
	progress io.Writer
	context  string // file of the command line

	kube     *kubetest.Cluster
	border   *border
	members  []*controller
	machines []*machine
	objects  map[string]*kubetest.Pod // of pods, by name
	// generation counts moves of pods, so that each new one has a name and an address of its own.
	generation int
	// ended counts requests of clients that ended, well or not. Clients do.
	ended atomic.Int64
}

func (w *world) log(name string) string { return filepath.Join(w.logs, name+".log") }

// sayf tells who waits what goes on.
func (w *world) sayf(format string, args ...any) { fmt.Fprintf(w.progress, format+"\n", args...) }

// notef is sayf for what happens within a step, with the time as logs have it.
func (w *world) notef(format string, args ...any) {
	w.sayf("  "+time.Now().UTC().Format(stamp)+" "+format, args...)
}

func newWorld(o Options, progress io.Writer) *world {
	return &world{o: o, dir: o.Dir, logs: o.Logs, progress: progress, objects: map[string]*kubetest.Pod{}}
}

// build makes everything.
func (w *world) build(ctx context.Context) (err error) {
	if err := os.MkdirAll(w.logs, 0o755); err != nil {
		return err
	}
	w.sayf("making networks and starting the switch")
	if w.border, err = newBorder(ctx, w.o); err != nil {
		return err
	}
	if err := errors.Join(attach(here, "kube", kubeAddress), plug("kube")); err != nil {
		return err
	}
	w.sayf("starting etcd, kube-apiserver and kube-controller-manager")
	if err := w.startKube(ctx); err != nil {
		return err
	}
	if err := w.operator(); err != nil {
		return err
	}
	w.sayf("starting %d members", memberCount)
	for m := 1; m <= memberCount; m++ {
		c, err := newController(w, m)
		if err != nil {
			return err
		}
		w.members = append(w.members, c)
		if err := c.process.Start(); err != nil {
			return err
		}
	}
	w.sayf("starting %d nodes with agents and pods", nodeCount)
	for n := 1; n <= nodeCount; n++ {
		if err := w.addMachine(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// addMachine starts a node with a pod of each service.
func (w *world) addMachine(ctx context.Context, n int) error {
	m, err := newMachine(w, n)
	if err != nil {
		return err
	}
	w.machines = append(w.machines, m)
	if err := m.boots(w); err != nil {
		return err
	}
	for i, s := range services {
		if err := w.addPod(ctx, m, s.name, fmt.Sprintf("%s-%d", s.name, n), i+1); err != nil {
			return err
		}
	}
	return nil
}

// addPod runs a pod on a node, and has it found in the API once it serves. The index makes its address.
func (w *world) addPod(ctx context.Context, m *machine, service, name string, index int) error {
	p, err := m.runs(w, service, name, index)
	if err != nil {
		return err
	}
	if err := eventually(ctx, "answer of pod "+name, func() error { return m.asks(p) }); err != nil {
		return err
	}
	w.objects[name], err = w.tellPod(ctx, m, p)
	return err
}

// end ends what does not end with the sandbox.
func (w *world) end() error {
	if w.kube == nil {
		return nil
	}
	return w.kube.Close()
}

// wantedHops are the nodes to which the switch should send packets for a service: those with a pod of it.
func (w *world) wantedHops(s service) []netip.Addr {
	var out []netip.Addr
	for _, m := range w.machines {
		for _, p := range m.pods {
			if p.service == s.name && m.alive && !m.drained {
				out = append(out, nodeAddress(m.n))
				break
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// right waits until all that runs is as it should be, here and there.
func (w *world) right(ctx context.Context) error {
	for _, c := range []struct {
		what      string
		condition func(context.Context) error
	}{
		{"whole group", w.whole},
		{"routes to all nodes with pods", w.routed},
		{"paths from every member", w.announced},
		{"answers from every node", w.answered},
	} {
		if err := eventually(ctx, c.what, func() error { return c.condition(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// routed tells what is wrong with the switch's kernel routes.
func (w *world) routed(context.Context) error {
	for _, s := range services {
		have, err := w.border.nextHops(s.address)
		if err != nil {
			return err
		}
		if want := w.wantedHops(s); !slices.Equal(have, want) {
			return fmt.Errorf("%s goes to %v, not %v", s.name, have, want)
		}
	}
	return nil
}

// announced tells which member's paths are missing or stale at the switch.
func (w *world) announced(context.Context) error {
	up, err := w.border.sessions()
	if err != nil {
		return err
	}
	for _, c := range w.members {
		if !up[c.name] {
			return fmt.Errorf("the switch has no session with %s", c.name)
		}
	}
	for _, s := range services {
		paths, err := w.border.paths(s.address)
		if err != nil {
			return err
		}
		for _, c := range w.members {
			if want := len(w.wantedHops(s)); paths[c.name] != want {
				return fmt.Errorf("%s announces %d paths of %s, not %d", c.name, paths[c.name], s.name, want)
			}
		}
	}
	return nil
}
