// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/api/desired"
)

// Balancing §13.6: what listens at proxy ports is told once, and again when it is something else; what cannot be found out likewise.
// Rule: balancing §13.
func TestProgramsAtProxyPortsAreToldOnce(t *testing.T) {
	var text bytes.Buffer
	var ports []desired.Port
	var fault error
	o, err := newOverheard(func([]*desired.Service) ([]desired.Port, error) { return ports, fault }, slog.New(slog.NewTextHandler(&text, nil)), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	a, b := desired.Port{Protocol: 6, Number: 7000}, desired.Port{Protocol: 17, Number: 53}
	for i, step := range []struct {
		ports []desired.Port
		fault error
		want  string // in a line, if anything
		gauge float64
	}{
		{}, {ports: []desired.Port{a}, want: "7000/tcp", gauge: 1}, {ports: []desired.Port{a}, gauge: 1}, {ports: []desired.Port{a, b}, want: "7000/tcp 53/udp", gauge: 2},
		{fault: errors.New("not permitted"), want: "not permitted", gauge: 2}, {fault: errors.New("not permitted"), gauge: 2}, {}, {ports: []desired.Port{a}, want: "7000/tcp", gauge: 1},
	} {
		text.Reset()
		ports, fault = step.ports, step.fault
		o.look()
		if got := text.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("step %d: told %q, want %q", i, got, step.want)
		}
		if got := testutil.ToFloat64(o.ports); got != step.gauge {
			t.Errorf("step %d: the gauge is %v, want %v", i, got, step.gauge)
		}
	}
}
