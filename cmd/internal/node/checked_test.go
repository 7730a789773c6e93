// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
)

// applierFunc is an Applier that is a function.
type applierFunc func() error

func (f applierFunc) Apply(context.Context, desired.State) ([]agent.Failure, error) { return nil, f() }

// Outside load balancers are told of a state once it is carried out: not of one that failed.
func TestHealthChecksAreOfWhatIsCarriedOut(t *testing.T) {
	var opened []uint16
	edges := Edges{ListenEverywhere: func(_ config.Agent, port uint16) (net.Listener, error) {
		opened = append(opened, port)
		return net.Listen("tcp", "127.0.0.1:0")
	}}
	checks, err := openChecks(config.Agent{Node: "n1"}, edges, func() error { return nil }, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = checks.Run(ctx) }()
	defer func() { stop(); <-ended }()
	broken := errors.New("no table")
	c := checked{applierFunc(func() error { return broken }), checks}
	want := stateOf(t, desired.Service{Name: "shop/web", Local: true, HealthCheckNodePort: 30100})
	if _, err := c.Apply(ctx, want); !errors.Is(err, broken) || len(opened) > 0 {
		t.Errorf("%v, opened %v", err, opened)
	}
	broken = nil
	if _, err := c.Apply(ctx, want); err != nil || len(opened) != 1 || opened[0] != 30100 {
		t.Errorf("%v, opened %v", err, opened)
	}
}

func TestHealthChecksNeedSomebodyWhoOpensPorts(t *testing.T) {
	_, err := openChecks(config.Agent{Node: "n1"}, Edges{}, nil, slog.New(slog.DiscardHandler), nil)
	if err == nil || !strings.Contains(err.Error(), "healthCheckNodePorts") {
		t.Error(err)
	}
}

// stateOf is a state with one Service.
func stateOf(t *testing.T, s desired.Service) desired.State {
	t.Helper()
	value, err := desired.ServiceValue(s)
	if err != nil {
		t.Fatal(err)
	}
	return stateOfItems(t, map[string][]byte{desired.ServiceKey(s.Name): value})
}

// stateOfItems is a state with these, by their keys.
func stateOfItems(t *testing.T, items map[string][]byte) desired.State {
	t.Helper()
	var pieces desired.Pieces
	var digest desired.Digest
	for _, key := range slices.Sorted(maps.Keys(items)) {
		if err := pieces.Put(key, items[key]); err != nil {
			t.Fatal(err)
		}
		digest = digest.Plus(key, items[key])
	}
	changes, err := pieces.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var steps desired.Steps
	if _, err := steps.Add(&fairleadv1.SyncResponse{
		Revision: desired.RevisionMessage(fsm.Revision{Epoch: 1, Index: 1}), Full: true, Changes: changes, Digest: digest[:],
		Node: desired.NodeMessage("g", nil, nil),
	}); err != nil {
		t.Fatal(err)
	}
	return steps.State
}
