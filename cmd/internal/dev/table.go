// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// draw prints the picture for people.
func draw(w io.Writer, p Picture) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(t, format+"\n", args...) }
	line("MEMBER\tSTATE\tAPPLIED\tDIGEST")
	for _, m := range p.Members {
		state := "follower"
		switch {
		case !m.Running:
			line("%s\tstopped\t\t", m.Name)
			continue
		case m.Leader:
			state = "leader"
		}
		line("%s\t%s\t%d\t%.12s", m.Name, state, m.Applied, m.Digest)
	}
	line("\nSERVICE\tADDRESSES\tPENDING")
	for _, s := range p.Services {
		line("%s\t%s\t%s", s.Name, orDash(strings.Join(s.Addresses, ", ")), orDash(s.Pending))
	}
	line("\nROUTE\tNEXT HOPS\tAT THE SWITCH")
	rib := map[string]string{}
	for _, r := range p.Switch.RIB {
		rib[r.Prefix] = strings.Join(r.NextHops, ", ")
	}
	for _, r := range p.Routes {
		var hops []string
		for i, h := range r.NextHops {
			hops = append(hops, h+" "+string(r.hops[i]))
		}
		line("%s\t%s\t%s", r.Prefix, strings.Join(hops, ", "), orDash(rib[r.Prefix]))
		delete(rib, r.Prefix)
	}
	for prefix, hops := range rib {
		line("%s\t-\t%s", prefix, hops)
	}
	for i, r := range p.Policies {
		if i == 0 {
			line("\nPOLICY\tCAPTURES\tBACKENDS\tPENDING")
		}
		line("%s\t%s\t%d\t%s", r.Name, orDash(strings.Join(r.Captures, ", ")), r.Backends, orDash(r.Pending))
	}
	list := func(title string, lines []string) {
		for i, text := range lines {
			if i == 0 {
				line("\n%s", title)
			}
			line("%s", text)
		}
	}
	list("PROBLEMS", p.Problems)
	list("WARNINGS", p.Warnings)
	return t.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
