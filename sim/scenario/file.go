// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/workload"
)

// file is a scenario as people write it, in the order of its fields.
type file struct {
	Name      string      `json:"name,omitempty"`
	About     string      `json:"about,omitempty"`
	Seed      uint64      `json:"seed"`
	Duration  span        `json:"duration"`
	Members   int         `json:"members"`
	Nodes     int         `json:"nodes"`
	Switches  int         `json:"switches"`
	Services  int         `json:"services"`
	Balancers int         `json:"balancers,omitempty"`
	Clients   int         `json:"clients,omitempty"`
	Outside   int         `json:"outside,omitempty"`
	Segments  int         `json:"segments,omitempty"`
	Aggregate int         `json:"aggregate,omitempty"`
	ShortLogs bool        `json:"shortLogs,omitempty"`
	Policies  bool        `json:"policies,omitempty"`
	Inside    bool        `json:"clusterIPs,omitempty"`
	NodePorts bool        `json:"nodePorts,omitempty"`
	Tunnels   bool        `json:"tunnels,omitempty"`
	Probes    bool        `json:"probes,omitempty"`
	Room      int         `json:"room,omitempty"`
	Drift     int         `json:"drift,omitempty"`
	Faults    []faultFile `json:"faults,omitempty"`
	Work      []stepFile  `json:"work,omitempty"`
}

type faultFile struct {
	Kind string   `json:"kind"`
	At   span     `json:"at"`
	For  span     `json:"for"`
	Who  []string `json:"who,omitempty"` // "on" would be a truth in YAML
	With values   `json:"with,omitempty"`
}

type stepFile struct {
	At   span   `json:"at"`
	Do   string `json:"do"`
	With values `json:"with,omitempty"`
}

// span is a time as people write it.
type span time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (s *span) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf(`%s is not a time; write one such as "12.5s"`, b)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is not a time; write one such as "12.5s"`, text)
	}
	*s = span(d)
	return nil
}

// values take numbers and truths without quotes as well.
type values parameter.Values

// UnmarshalJSON implements json.Unmarshaler.
func (v *values) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("with: %s is not a list of parameters; write name: value", b)
	}
	*v = values{}
	for name, raw := range all {
		var text string
		switch {
		case json.Unmarshal(raw, &text) == nil:
			(*v)[name] = text
		case raw[0] == '{' || raw[0] == '[' || string(raw) == "null":
			return fmt.Errorf("with.%s: %s is not a value; write a word or a number", name, raw)
		default:
			(*v)[name] = string(raw)
		}
	}
	return nil
}

// Read reads a scenario from a file and checks it. Errors name the file, the field, why it is wrong, and what to do.
func Read(path string) (Scenario, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Scenario{}, fmt.Errorf("scenario %s: no such file; name one, such as `fairlead sim run --save` writes", path)
	case err != nil:
		return Scenario{}, fmt.Errorf("scenario %s: %w; name a file that can be read", path, err)
	}
	s, err := Parse(text)
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario %s: %w", path, err)
	}
	return s, nil
}

// Parse reads a scenario and checks it.
func Parse(text []byte) (Scenario, error) {
	var f file
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return Scenario{}, plain(err)
	}
	s := f.scenario()
	return s, s.Validate()
}

// plain says in one line what a decoder has against a file.
func plain(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, prefix := range []string{"error converting YAML to JSON:", "error unmarshaling JSON:", "while decoding JSON:", "json:", "yaml:"} {
		text = strings.TrimSpace(strings.TrimPrefix(text, prefix))
	}
	remedy := ""
	switch {
	case strings.HasPrefix(text, "unknown field"):
		remedy = "; there are name, about, seed, duration, members, nodes, switches, services, balancers, clients, outside," +
			" segments, aggregate, shortLogs, policies, clusterIPs, nodePorts, tunnels, probes, room, drift, faults (kind, at, for, who, with) and work (at, do, with)"
	case strings.HasPrefix(text, "cannot unmarshal"):
		remedy = "; write a value of that type"
	}
	return errors.New(text + remedy)
}

func (f file) scenario() Scenario {
	s := Scenario{
		Name: f.Name, About: f.About, Seed: f.Seed, Duration: time.Duration(f.Duration), Members: f.Members, Nodes: f.Nodes,
		Switches: f.Switches, Services: f.Services, Balancers: f.Balancers, Clients: f.Clients, Outside: f.Outside, Segments: f.Segments,
		Aggregate: f.Aggregate, ShortLogs: f.ShortLogs, Sockets: start.Sockets{Policies: f.Policies, ClusterIPs: f.Inside, NodePorts: f.NodePorts, Tunnels: f.Tunnels, Probes: f.Probes, Room: f.Room}, Drift: f.Drift,
	}
	for _, x := range f.Faults {
		s.Faults = append(s.Faults, fault.Fault{
			Kind: x.Kind, At: time.Duration(x.At), For: time.Duration(x.For), On: x.Who, With: parameter.Values(x.With),
		})
	}
	for _, x := range f.Work {
		s.Work = append(s.Work, workload.Step{At: time.Duration(x.At), Do: x.Do, With: parameter.Values(x.With)})
	}
	return s
}

// Write writes it into a file, wholly or not at all.
func (s Scenario) Write(path string) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, s.Text(), 0o644); err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("write scenario %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("write scenario %s: %w", path, err)
	}
	return nil
}
