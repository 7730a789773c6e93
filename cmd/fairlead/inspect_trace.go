// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/sock"
)

// traced is what `fairlead inspect trace` prints.
type traced struct {
	inspectedPlace
	Why string `json:"why"` // in words
}

// WriteTable writes what becomes of a call, and why.
func (t traced) WriteTable(w io.Writer) error {
	fields := [][2]string{{"place", t.Place}, {"service", t.Service}, {"mode", t.Mode}, {"verdict", t.Verdict}, {"why", t.Why}}
	for _, e := range t.Endpoints {
		fields = append(fields, [2]string{"endpoint", fmt.Sprintf("%s, %d of %d calls", e.Address, e.Share, e.Of)})
	}
	return output.WriteFields(w, fields...)
}

func (in *inspection) trace() *cobra.Command {
	return &cobra.Command{
		Use:     "trace ADDRESS:PORT[/udp]",
		Short:   "Say what a program of this node gets when it connects there, and why",
		Example: "  fairlead inspect trace 192.0.2.1:443\n  fairlead inspect trace '[2001:db8::1]:53/udp'",
		Args:    arguments(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := placeOf(args[0])
			if err != nil {
				return &usageError{err}
			}
			return in.show(func() (output.Tabler, error) { return in.follow(at) })
		},
	}
}

// placeOf reads what is dialled.
func placeOf(text string) (sock.Place, error) {
	address, protocol, _ := strings.Cut(text, "/")
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Port() == 0 {
		return sock.Place{}, fmt.Errorf("%q is no address and port; write it as 192.0.2.1:443, [2001:db8::1]:443, or with /udp behind", text)
	}
	p := sock.Place{Address: at.Addr().Unmap(), Port: at.Port(), Protocol: sock.TCP}
	switch protocol {
	case "", "tcp":
	case "udp":
		p.Protocol = sock.UDP
	default:
		return sock.Place{}, fmt.Errorf("%q: calls over %q are not resolved; tcp and udp are", text, protocol)
	}
	return p, nil
}

// untunnelled tells whether backends of a policy are left out because this host has no tunnel.
func (in *inspection) untunnelled(policy string) bool {
	c := node.SockOptions(in.conf, sock.Capacity{}, nil, nil).Config
	return slices.ContainsFunc(in.state.Policies(), func(d *desired.Policy) bool { return d.Name == policy && c.Beyond(in.state, d) })
}

func (in *inspection) follow(at sock.Place) (output.Tabler, error) {
	rows, err := in.tables.Rows()
	if err != nil {
		return nil, err
	}
	a := rows.Resolve(sock.Call{To: at})
	out := traced{inspectedPlace: in.place(rows, at, a.Choice)}
	switch {
	case a.Missing:
		out.Verdict, out.Why = a.Verdict.String(), "the tables lack what the place names: the agent is writing them, or somebody else did; the next comparison puts that right"
	case a.Verdict == sock.Use:
		out.Why = "a program gets to one of the endpoints"
		if a.Choice.Affinity > 0 {
			out.Why += fmt.Sprintf("; a network namespace keeps its own until it was not used for %ds", a.Choice.Affinity)
		}
	case a.Verdict == sock.Refuse && a.Choice.Mode == sock.BalancingNodeProxy && in.untunnelled(out.Service):
		out.Why = "its backends are behind tunnels, and this host has none (tunnel: {} in agent.yaml, docs/tunnels.md): connect fails with ECONNREFUSED (EPERM before Linux 5.18)"
	case a.Verdict == sock.Refuse:
		out.Why = "there is no endpoint: connect fails with ECONNREFUSED (EPERM before Linux 5.18)"
	case a.Verdict == sock.Unreachable:
		out.Why = "there is no endpoint that this host may use: connect fails with EHOSTUNREACH (EPERM before Linux 5.18)"
	default:
		out.Service, out.Kind, out.Mode = "", "", ""
		out.Why = "nothing is resolved at this place: packets go to it as they are, and may be translated on their way (docs/nat.md)"
	}
	if first := a.Choice; first.Limited || first.Spares {
		out.Why += in.onward(rows, at, first)
	}
	return out, nil
}

// onward says which calls to a place go on to what stands behind its rule, and what they get there.
func (in *inspection) onward(rows sock.Rows, at sock.Place, first sock.Choice) string {
	var who []string
	then := rows.Resolve(sock.Call{To: at, Own: true})
	if first.Spares {
		who = append(who, "from backends of the rule itself")
	}
	if first.Limited {
		who, then = append(who, "beyond its limit in a second"), rows.Resolve(sock.Call{To: at, Spent: true})
	}
	what := "nothing is resolved, and packets go as they are"
	switch then.Verdict {
	case sock.Use:
		var endpoints []string
		for _, e := range in.place(rows, at, then.Choice).Endpoints {
			endpoints = append(endpoints, e.Address)
		}
		what = "they get to " + strings.Join(endpoints, ", ")
	case sock.Refuse, sock.Unreachable:
		what = "they are refused"
	}
	if of := in.name(then.Choice.Rule); then.Choice.Rule != 0 && then.Choice.Rule != first.Rule {
		what += " of " + then.Choice.Kind.String() + " " + of
	}
	return "; calls " + strings.Join(who, ", and ") + " go on: " + what
}
