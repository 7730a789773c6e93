// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
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
	var m desiredtest.Told
	m.Services(s)
	return m.State(t, nil)
}
