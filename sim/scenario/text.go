// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/scenario/parameter"
)

// Text is the scenario as a file holds it: in the order in which it is read, a fault or a step in a line.
func (s Scenario) Text() []byte {
	var b bytes.Buffer
	line := func(name, value string, there bool) {
		if there {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	line("name", word(s.Name), s.Name != "")
	line("about", word(s.About), s.About != "")
	line("seed", fmt.Sprint(s.Seed), true)
	line("duration", s.Duration.String(), true)
	line("members", fmt.Sprint(s.Members), true)
	line("nodes", fmt.Sprint(s.Nodes), true)
	line("switches", fmt.Sprint(s.Switches), true)
	line("services", fmt.Sprint(s.Services), true)
	line("balancers", fmt.Sprint(s.Balancers), s.Balancers != 0)
	line("clients", fmt.Sprint(s.Clients), s.Clients != 0)
	line("outside", fmt.Sprint(s.Outside), s.Outside != 0)
	line("segments", fmt.Sprint(s.Segments), s.Segments != 0)
	line("aggregate", fmt.Sprint(s.Aggregate), s.Aggregate != 0)
	line("shortLogs", "true", s.ShortLogs)
	line("policies", "true", s.Sockets.Policies)
	line("clusterIPs", "true", s.Sockets.ClusterIPs)
	line("nodePorts", "true", s.Sockets.NodePorts)
	line("tunnels", "true", s.Sockets.Tunnels)
	line("probes", "true", s.Sockets.Probes)
	line("room", fmt.Sprint(s.Sockets.Room), s.Sockets.Room != 0)
	line("drift", fmt.Sprint(s.Drift), s.Drift != 0)
	if len(s.Faults) > 0 {
		b.WriteString("faults:\n")
	}
	for _, f := range s.Faults {
		item(&b, []string{"kind", word(f.Kind)}, at(f.At), []string{"for", f.For.String()}, words("who", f.On), with(f.With))
	}
	if len(s.Work) > 0 {
		b.WriteString("work:\n")
	}
	for _, w := range s.Work {
		item(&b, at(w.At), []string{"do", word(w.Do)}, with(w.With))
	}
	return b.Bytes()
}

// item writes an element of a list, leaving out what is not there.
func item(b *bytes.Buffer, fields ...[]string) {
	var all []string
	for _, f := range fields {
		if f != nil {
			all = append(all, f[0]+": "+f[1])
		}
	}
	fmt.Fprintf(b, "- {%s}\n", strings.Join(all, ", "))
}

func at(t time.Duration) []string { return []string{"at", t.String()} }

func words(name string, list []string) []string {
	if len(list) == 0 {
		return nil
	}
	var all []string
	for _, w := range list {
		all = append(all, word(w))
	}
	return []string{name, "[" + strings.Join(all, ", ") + "]"}
}

func with(v parameter.Values) []string {
	if len(v) == 0 {
		return nil
	}
	var all []string
	for _, name := range v.Names() {
		all = append(all, word(name)+": "+word(v[name]))
	}
	return []string{"with", "{" + strings.Join(all, ", ") + "}"}
}

// bare is what YAML takes for a text without quotes; a name, or a time.
var bare = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9._/-]*|-?[0-9][0-9.]*(ns|us|ms|s|m|h)([0-9.]+(ms|s|m))*)$`)

// word writes a text, in quotes where YAML would take it for something else.
func word(text string) string {
	if bare.MatchString(text) && !slices.Contains(others, strings.ToLower(text)) {
		return text
	}
	return strconv.QuoteToASCII(strings.ToValidUTF8(text, "\uFFFD")) // whose escapes are YAML's, too
}

// others are words that YAML takes for something else than texts.
var others = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
