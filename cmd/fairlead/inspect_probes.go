// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/config"
)

// inspectedProbes is what `fairlead inspect probes` prints.
type inspectedProbes struct {
	Probes []inspectedProbe `json:"probes"`
}

// inspectedProbe is what the agent thinks, or thought last, of an address that a policy lists, or of an endpoint of a Service.
type inspectedProbe struct {
	Policy     string   `json:"policy"` // or Service/namespace/name
	Address    string   `json:"address"`
	Port       string   `json:"port"`      // number/protocol, of the backend; empty of an endpoint
	Targets    []string `json:"targets"`   // that are probed for it
	Opinion    string   `json:"opinion"`   // good, bad or unknown
	FailsOpen  bool     `json:"failsOpen"` // it is bad, and used, since all of the port are
	Why        string   `json:"why"`
	AgeSeconds int64    `json:"ageSeconds"` // since the agent wrote that down; it does when something changes
}

// WriteTable writes a line an address and port.
func (p inspectedProbes) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(p.Probes))
	for _, one := range p.Probes {
		opinion := one.Opinion
		if one.FailsOpen {
			opinion += ", used"
		}
		rows = append(rows, []string{one.Policy, one.Address, one.Port, strings.Join(one.Targets, ", "), opinion, one.Why, fmt.Sprintf("%ds", one.AgeSeconds)})
	}
	return output.WriteRows(w, []string{"POLICY", "ADDRESS", "PORT", "TARGETS", "OPINION", "WHY", "AGE"}, rows)
}

// probes tells what the node's agent wrote down. It needs nothing of the kernel.
func (in *inspection) probes() (output.Tabler, error) {
	conf, err := config.LoadAgent(in.path, os.Getenv("NODE_NAME"))
	if err != nil {
		return nil, err
	}
	states, err := thoughtOf(conf)
	if err != nil {
		return nil, err
	}
	if states == nil {
		return nil, fmt.Errorf("inspect: the agent has written nothing down; is `nat` or `sock` in %s, and has the agent run?", in.path)
	}
	out := inspectedProbes{Probes: []inspectedProbe{}}
	for _, s := range states {
		out.Probes = append(out.Probes, inspectedProbe{
			Policy: s.Policy, Address: s.Address, Port: s.Port, Targets: s.By, Opinion: s.Opinion, FailsOpen: s.Open, Why: s.Why,
			AgeSeconds: int64(time.Since(s.At).Seconds()),
		})
	}
	return out, nil
}
