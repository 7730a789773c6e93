// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/internal/smallfile"
)

// newInspect makes the commands that look at what the kernel of this node resolves by.
func newInspect(c *cli) *cobra.Command {
	in := &inspection{cli: c, path: "/etc/fairlead/agent.yaml"}
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Show what programs of this node get at service addresses",
		Long: "Show, on a node whose agent.yaml has `sock`, what is in the kernel: what programs of the node get when they connect to a\n" +
			"service address; `clean` removes some of it. It needs root. The names of Services are those that the agent was told last.",
	}
	cmd.PersistentFlags().StringVar(&in.path, "config", in.path, "configuration file of the node's agent")
	cmd.AddCommand(
		in.command("places", "List the addresses that are resolved, and what becomes of calls to them", in.places),
		in.command("clients", "List the clients that keep their endpoint", in.clients),
		in.command("sockets", "List the sockets that got to an endpoint", in.sockets),
		in.command("diff", "List the places where the kernel does not hold what the agent was told last", in.diff),
		in.command("counters", "Count calls, by what kind of rule decided and how they ended", in.counters),
		&cobra.Command{
			Use: "probes", Short: "List the addresses that are probed for policies, and what is thought of them", Args: arguments(0, 0),
			RunE: func(*cobra.Command, []string) error {
				v, err := in.probes()
				if err != nil {
					return err
				}
				return in.print(v)
			},
		},
		in.trace(),
		in.clean(),
	)
	return cmd
}

// inspection is one look into the kernel.
type inspection struct {
	*cli
	path   string
	conf   config.Agent
	pins   string
	state  desired.State // that the agent was told last
	tables *program.Tables
	names  map[uint32]string
}

func (in *inspection) command(use, short string, answer func() (output.Tabler, error)) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: arguments(0, 0), RunE: func(*cobra.Command, []string) error {
		return in.show(answer)
	}}
}

// open finds the tables that the configuration means. Whoever opens closes them.
func (in *inspection) open() (err error) {
	if in.conf, err = config.LoadAgent(in.path, os.Getenv("NODE_NAME")); err != nil {
		return err
	}
	if in.conf.Sock == nil {
		in.conf.Sock = &config.Sock{} // what an agent left is where it is by default
	}
	in.pins = cmp.Or(in.conf.Sock.Pins, program.DefaultPins)
	if in.tables, err = program.Look(in.pins); err != nil {
		return fmt.Errorf("inspect: %w; is `sock` in %s, and has the agent run?", err, in.path)
	}
	return nil
}

// show opens the tables, and prints an answer from them.
func (in *inspection) show(answer func() (output.Tabler, error)) (err error) {
	if err := in.open(); err != nil {
		return err
	}
	defer in.tables.Close()
	if in.state, err = stateOf(in.conf); err != nil {
		return err
	}
	in.names = namesOf(in.state)
	v, err := answer()
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	return in.print(v)
}

// stateOf is what the agent was told last; nothing where it was told nothing yet.
func stateOf(conf config.Agent) (desired.State, error) {
	data, err := smallfile.Read(filepath.Join(conf.StateDir, node.StateFile), 64<<20)
	if os.IsNotExist(err) {
		return desired.State{}, nil
	}
	if err != nil {
		return desired.State{}, fmt.Errorf("inspect: %w", err)
	}
	state, err := desired.Unmarshal(data)
	if err != nil {
		return desired.State{}, fmt.Errorf("inspect: %s: %w", node.StateFile, err)
	}
	return state, nil
}

// namesOf are the names of rules.
func namesOf(state desired.State) map[uint32]string {
	var names []string
	for _, s := range state.Services() {
		names = append(names, s.Name)
	}
	return sock.Names(names, state.Policies())
}

func (in *inspection) name(rule uint32) string {
	return cmp.Or(in.names[rule], "rule "+strconv.FormatUint(uint64(rule), 10))
}

// inspectedPlaces is what `fairlead inspect places` prints.
type inspectedPlaces struct {
	Places []inspectedPlace `json:"places"`
}

// inspectedPlace is one address and port, and what becomes of calls to it.
type inspectedPlace struct {
	Place           string              `json:"place"`   // address:port/protocol; the address of ones only is that of every node
	Service         string              `json:"service"` // or policy
	Kind            string              `json:"kind"`
	Mode            string              `json:"mode"`
	Verdict         string              `json:"verdict"`
	AffinitySeconds uint32              `json:"affinitySeconds"`
	Endpoints       []inspectedEndpoint `json:"endpoints"`
}

// inspectedEndpoint is one that calls may get to, and how many of so many do.
type inspectedEndpoint struct {
	Address string `json:"address"`
	Share   uint32 `json:"share"`
	Of      uint32 `json:"of"`
}

// WriteTable writes a line a place.
func (p inspectedPlaces) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(p.Places))
	for _, one := range p.Places {
		rows = append(rows, []string{one.Place, one.Service, one.Mode, one.Verdict, affinityText(one.AffinitySeconds), endpointsText(one.Endpoints)})
	}
	return output.WriteRows(w, []string{"PLACE", "SERVICE", "MODE", "VERDICT", "AFFINITY", "ENDPOINTS"}, rows)
}

func affinityText(seconds uint32) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%ds", seconds)
}

// endpointsText lists some endpoints, and counts the others.
func endpointsText(all []inspectedEndpoint) string {
	const most = 3
	var out []string
	for _, e := range all[:min(len(all), most)] {
		text := e.Address
		if e.Share > 1 {
			text += fmt.Sprintf(" (%d of %d)", e.Share, e.Of)
		}
		out = append(out, text)
	}
	if len(all) > most {
		out = append(out, fmt.Sprintf("%d more", len(all)-most))
	}
	return strings.Join(out, ", ")
}

func (in *inspection) places() (output.Tabler, error) {
	rows, err := in.tables.Rows()
	if err != nil {
		return nil, err
	}
	out := inspectedPlaces{Places: []inspectedPlace{}}
	for _, at := range rows.InOrder() {
		out.Places = append(out.Places, in.place(rows, at, rows.Places[at].First))
	}
	return out, nil
}

func (in *inspection) place(rows sock.Rows, at sock.Place, c sock.Choice) inspectedPlace {
	one := inspectedPlace{
		Place: at.String(), Service: in.name(c.Rule), Kind: c.Kind.String(), Mode: c.Mode.String(), Verdict: c.Verdict.String(),
		AffinitySeconds: c.Affinity, Endpoints: []inspectedEndpoint{},
	}
	share := map[netip.AddrPort]uint32{}
	for i := range c.Count {
		share[rows.Slots[sock.SlotKey{Set: c.Set, Index: i}].At]++
	}
	for at, n := range share {
		one.Endpoints = append(one.Endpoints, inspectedEndpoint{at.String(), n, c.Count})
	}
	slices.SortFunc(one.Endpoints, func(a, b inspectedEndpoint) int { return strings.Compare(a.Address, b.Address) })
	return one
}

// inspectedClients is what `fairlead inspect clients` prints.
type inspectedClients struct {
	Clients []inspectedClient `json:"clients"`
}

// inspectedClient is one that keeps its endpoint at a place.
type inspectedClient struct {
	Client        string `json:"client"` // cookie of a network namespace, or of a socket of datagrams
	By            string `json:"by"`     // namespace or socket
	Place         string `json:"place"`
	Service       string `json:"service"`
	Endpoint      string `json:"endpoint"` // empty if it is none any more: the next call gets another one
	UnusedSeconds int64  `json:"unusedSeconds"`
}

// WriteTable writes a line a client.
func (p inspectedClients) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(p.Clients))
	for _, c := range p.Clients {
		rows = append(rows, []string{c.By + " " + c.Client, c.Place, c.Service, c.Endpoint, fmt.Sprintf("%ds", c.UnusedSeconds)})
	}
	return output.WriteRows(w, []string{"CLIENT", "PLACE", "SERVICE", "ENDPOINT", "UNUSED"}, rows)
}

func (in *inspection) clients() (output.Tabler, error) {
	rows, err := in.tables.Rows()
	if err != nil {
		return nil, err
	}
	out := inspectedClients{Clients: []inspectedClient{}}
	for _, kind := range []struct {
		by   string
		list func() ([]program.Memory, error)
	}{{"namespace", in.tables.Affinity}, {"socket", in.tables.Flows}} {
		all, err := kind.list()
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			one := inspectedClient{
				Client: strconv.FormatUint(m.Client, 10), By: kind.by, Place: m.To.String(), Service: in.name(m.Rule), UnusedSeconds: int64(m.Unused.Seconds()),
			}
			if at, ok := rows.Remembered(m.To, m.Rule, m.Backend); ok {
				one.Endpoint = at.String()
			}
			out.Clients = append(out.Clients, one)
		}
	}
	slices.SortFunc(out.Clients, func(a, b inspectedClient) int {
		return cmp.Or(strings.Compare(a.Place, b.Place), strings.Compare(a.By, b.By), strings.Compare(a.Client, b.Client))
	})
	return out, nil
}

// inspectedSockets is what `fairlead inspect sockets` prints.
type inspectedSockets struct {
	Sockets []inspectedSocket `json:"sockets"`
}

// inspectedSocket is one that got to an endpoint.
type inspectedSocket struct {
	Socket   string `json:"socket"` // its cookie, as `ss -e` shows it after sk:, there in hexadecimal
	Place    string `json:"place"`
	Service  string `json:"service"`
	Endpoint string `json:"endpoint"`
}

// WriteTable writes a line a socket.
func (p inspectedSockets) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(p.Sockets))
	for _, s := range p.Sockets {
		rows = append(rows, []string{s.Socket, s.Place, s.Service, s.Endpoint})
	}
	return output.WriteRows(w, []string{"SOCKET", "PLACE", "SERVICE", "ENDPOINT"}, rows)
}

func (in *inspection) sockets() (output.Tabler, error) {
	all, err := in.tables.Records()
	if err != nil {
		return nil, err
	}
	out := inspectedSockets{Sockets: []inspectedSocket{}}
	for _, r := range all {
		out.Sockets = append(out.Sockets, inspectedSocket{
			strconv.FormatUint(r.Socket, 10), r.Original.String(), in.name(r.Rule), netip.AddrPortFrom(r.Backend.Address, r.Backend.Port).String(),
		})
	}
	slices.SortFunc(out.Sockets, func(a, b inspectedSocket) int {
		return cmp.Or(strings.Compare(a.Place, b.Place), strings.Compare(a.Socket, b.Socket), strings.Compare(a.Endpoint, b.Endpoint))
	})
	return out, nil
}

// inspectedCounters is what `fairlead inspect counters` prints.
type inspectedCounters struct {
	Calls []inspectedCalls `json:"calls"`
}

// inspectedCalls is how often calls of a kind ended so.
type inspectedCalls struct {
	Kind    string `json:"kind"`
	Outcome string `json:"outcome"`
	Calls   uint64 `json:"calls"`
}

// WriteTable writes a line for each way in which calls ended.
func (p inspectedCounters) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(p.Calls))
	for _, c := range p.Calls {
		rows = append(rows, []string{c.Kind, c.Outcome, strconv.FormatUint(c.Calls, 10)})
	}
	return output.WriteRows(w, []string{"KIND", "OUTCOME", "CALLS"}, rows)
}

func (in *inspection) counters() (output.Tabler, error) {
	all, err := in.tables.Counters()
	if err != nil {
		return nil, err
	}
	out := inspectedCounters{Calls: []inspectedCalls{}}
	for kind, outcomes := range all {
		for outcome, n := range outcomes {
			out.Calls = append(out.Calls, inspectedCalls{kind.Name(), outcome, n})
		}
	}
	slices.SortFunc(out.Calls, func(a, b inspectedCalls) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Outcome, b.Outcome))
	})
	return out, nil
}
