// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"fairlead.io/fairlead/dataplane/sock"
)

// Tables are those that programs work with, for somebody who only looks.
type Tables struct{ program Program }

// ErrNothing is that no agent has pinned anything where it was looked for.
var ErrNothing = errors.New("no agent resolves there")

// Look opens the tables that agents pinned below a folder. Errors: ErrNothing, or the process may not.
func Look(pins string) (*Tables, error) {
	folders, err := folders(pins)
	if err != nil {
		return nil, err
	}
	// While an agent goes over to other sizes there are two; the one of before still works.
	t := &Tables{Program{folder: folders[0]}}
	m := &t.program.maps
	for name, to := range map[string]**ebpf.Map{
		sockMapFrontends: &m.Frontends, sockMapSlots: &m.Slots, sockMapNodes: &m.Nodes, sockMapWindows: &m.Windows,
		sockMapAffinity: &m.Affinity, sockMapFlows: &m.Flows, sockMapRecords: &m.Records, sockMapCounters: &m.Counters,
	} {
		if *to, err = ebpf.LoadPinnedMap(filepath.Join(t.program.folder, name), &ebpf.LoadPinOptions{ReadOnly: true}); err != nil {
			return nil, errors.Join(fmt.Errorf("open table %s: %w", name, explain(err)), t.Close())
		}
	}
	return t, nil
}

// folders are those of tables, in order.
func folders(pins string) ([]string, error) {
	out, err := filepath.Glob(filepath.Join(pins, fmt.Sprintf("tables-%d-*", layout)))
	if err != nil || len(out) == 0 {
		return nil, fmt.Errorf("%s: %w", pins, ErrNothing)
	}
	slices.Sort(out)
	return out, nil
}

// Close ends the look.
func (t *Tables) Close() error {
	m := &t.program.maps
	var errs []error
	for _, opened := range []*ebpf.Map{m.Frontends, m.Slots, m.Nodes, m.Windows, m.Affinity, m.Flows, m.Records, m.Counters} {
		if opened != nil {
			errs = append(errs, opened.Close())
		}
	}
	return errors.Join(errs...)
}

// Rows are what calls are decided by.
func (t *Tables) Rows() (sock.Rows, error) { return t.program.Read() }

// Counters tells how often calls ended how since the tables were made.
func (t *Tables) Counters() (map[sock.Kind]map[string]uint64, error) { return t.program.Counters() }

// Records are the sockets that got to backends, in no order. Ones that come and go meanwhile may lack.
func (t *Tables) Records() ([]sock.Record, error) { return t.program.Records() }

// Records are the sockets that got to backends, in no order. Ones that come and go meanwhile may lack.
func (p *Program) Records() (out []sock.Record, err error) {
	var key sockRecordKey
	var r sockRecord
	err = eachNow(p.maps.Records, "records", &key, &r, func() {
		out = append(out, sock.Record{Socket: key.Socket, Original: decodePlace(r.Original), Backend: decodePlace(key.Backend), Rule: r.Rule})
	})
	return out, err
}

// Memory is a client that keeps its backend at a place.
type Memory struct {
	Client  uint64 // cookie of a network namespace, or of a socket
	To      sock.Place
	Rule    uint32
	Backend uint32        // the slot's ID
	Unused  time.Duration // since its last use
}

// Affinity are the clients of rules with affinity, Flows those of datagrams.
func (t *Tables) Affinity() ([]Memory, error) { return memories(t.program.maps.Affinity, "affinity") }

// Flows are clients of datagrams, whose sockets are not connected.
func (t *Tables) Flows() ([]Memory, error) { return memories(t.program.maps.Flows, "flows") }

func memories(m *ebpf.Map, name string) (out []Memory, err error) {
	now, err := monotonic()
	if err != nil {
		return nil, err
	}
	var key sockMemoryKey
	var one sockMemory
	err = eachNow(m, name, &key, &one, func() {
		out = append(out, Memory{key.Client, decodePlace(key.To), key.Rule, one.Backend, unused(now, one)})
	})
	return out, err
}

// eachNow goes through a table that programs write to meanwhile.
func eachNow(m *ebpf.Map, name string, key, value any, f func()) error {
	if err := each(m, name, key, value, f); !errors.Is(err, ebpf.ErrIterationAborted) {
		return err
	}
	return nil
}
