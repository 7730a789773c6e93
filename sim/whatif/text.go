// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"fairlead.io/fairlead/sim/check"
)

// WriteText writes a report for people: the sentences first, then what stands behind each.
func (r Report) WriteText(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s, %s, seed %d\n", r.Folder, number(len(r.Members), "member", "members"), number(len(r.Nodes), "node", "nodes"),
		number(len(r.Switches), "switch", "switches"), r.Seed)
	for _, v := range r.broken() {
		fmt.Fprintf(&b, "\nRULE %s BROKE %.3f s into the world of %s: %s\n  repeat it: %s\n  This is a fault of Fairlead or of its simulator; please report it.\n", v.Violation.Rule, v.Violation.At, v.ID, v.Violation, v.Replay)
	}
	b.WriteString("\n")
	for _, a := range r.Answers {
		fmt.Fprintf(&b, "- %s\n", a.Summary)
	}
	lines(&b, "\nmade up", r.Made)
	lines(&b, "\nnote", r.Notes)
	lines(&b, "\nnot part of the simulation", r.Unused)
	var unserved []string
	for _, u := range r.Unserved {
		unserved = append(unserved, u.Service+": "+u.Why)
	}
	lines(&b, "\nnot served even before", unserved)
	for _, a := range r.Answers {
		a.write(&b)
	}
	fmt.Fprintf(&b, "\nEach address is asked every %.0f ms by each of two clients. %s\n", r.Resolution*1000, r.Uncovered)
	fmt.Fprintf(&b, "%s\n", r.judged())
	_, err := io.WriteString(to, b.String())
	return err
}

// judged says which rules were put to the test.
func (r Report) judged() string {
	var done, idle []string
	for _, rule := range check.Rules() {
		if n, known := r.Checks[rule.ID]; known && n > 0 {
			done = append(done, rule.ID)
		} else if known {
			idle = append(idle, rule.ID)
		}
	}
	text := "Judged in every world, all along and at its end: " + list(done) + "."
	if len(idle) > 0 {
		text += " Without anything to judge here: " + list(idle) + " (`fairlead sim list` says what they ask)."
	}
	return text
}

// broken are the answers in which a rule broke.
func (r Report) broken() []Answer {
	return slices.DeleteFunc(slices.Clone(r.Answers), func(a Answer) bool { return a.Violation == nil })
}

// Failed is the first answer in which a rule broke; nil if all held.
func (r Report) Failed() *Answer {
	if all := r.broken(); len(all) > 0 {
		return &all[0]
	}
	return nil
}

func lines(b *strings.Builder, title string, of []string) {
	if len(of) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for _, text := range of {
		fmt.Fprintf(b, "- %s\n", text)
	}
}

// write writes what stands behind an answer. Addresses that saw the same are told together.
func (a Answer) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n== If %s (%s)\n", a.What, a.ID)
	for _, l := range a.Leaders {
		fmt.Fprintf(b, "   %s: %s leads\n", at(l.After), l.Text)
	}
	for rest := a.served(); len(rest) > 0; {
		story := rest[0].story()
		var alike, others []Outcome
		for _, o := range rest {
			if o.story() == story {
				alike = append(alike, o)
			} else {
				others = append(others, o)
			}
		}
		write(b, alike)
		rest = others
	}
}

// story is what an address saw, without what differs by chance. Addresses of which requests failed are told one by one.
func (o Outcome) story() string {
	if o.Failed > 0 {
		return o.Address + " " + o.Service
	}
	var all []string
	for _, s := range o.Route {
		all = append(all, fmt.Sprintf("%.1f %s", s.After, s.Text))
	}
	return strings.Join(all, "\n")
}

// write writes what addresses saw that saw the same.
func write(b *strings.Builder, alike []Outcome) {
	if len(alike) == 1 {
		alike[0].write(b)
		return
	}
	var names []string
	sent := 0
	for _, o := range alike {
		names = append(names, o.Address+" ("+o.Service+")")
		sent += o.Sent
	}
	fmt.Fprintf(b, "%s: %d requests, 0 failed\n", some(names), sent)
	alike[0].writeRoute(b)
}

// mostNamed is how many addresses are named that saw the same.
const mostNamed = 6

func (o Outcome) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s (%s): %d requests, %d failed", o.Address, o.Service, o.Sent, o.Failed)
	if o.Failed > 0 {
		fmt.Fprintf(b, "; longest gap %s", duration(o.Gap.Seconds))
		var by []string
		for _, name := range slices.Sorted(maps.Keys(o.GapBy)) {
			by = append(by, name+" "+duration(o.GapBy[name].Seconds))
		}
		if len(by) > 1 {
			fmt.Fprintf(b, " (%s)", strings.Join(by, ", "))
		}
		if o.Healed {
			fmt.Fprintf(b, "; whole again after %s", duration(*o.Whole))
		} else {
			b.WriteString("; not whole again")
		}
		fmt.Fprintf(b, "; mostly: %s", o.Why)
	}
	if o.Unwanted > 0 {
		fmt.Fprintf(b, "; %d more when no pod was ready", o.Unwanted)
	}
	if o.Early > 0 {
		fmt.Fprintf(b, "; %d failed before it began", o.Early)
	}
	b.WriteString("\n")
	now := percent(o.Before.Nodes)
	fmt.Fprintf(b, "   before: %s", now)
	for _, x := range []struct {
		name  string
		where Where
	}{{"during", o.During}, {"after", o.After}} {
		if text := percent(x.where.Nodes); text != now {
			fmt.Fprintf(b, "; %s: %s", x.name, text)
			now = text
		} else {
			fmt.Fprintf(b, "; %s: the same", x.name)
		}
	}
	b.WriteString("\n")
	o.writeRoute(b)
}

func (o Outcome) writeRoute(b *strings.Builder) {
	for i, s := range o.Route {
		if i == mostShown {
			fmt.Fprintf(b, "   and %d more changes\n", len(o.Route)-i)
			break
		}
		fmt.Fprintf(b, "   %s: %s\n", at(s.After), s.Text)
	}
}

// mostShown is how many changes of a route are shown; the JSON form has more.
const mostShown = 12

func at(s float64) string { return fmt.Sprintf("+%.2f s", s) }

// percent says who served, as shares rounded so that chance does not show.
func percent(shares []Share) string {
	if len(shares) == 0 {
		return "nobody"
	}
	var out []string
	for _, s := range shares {
		out = append(out, fmt.Sprintf("%s %.0f %%", s.Name, s.Share*100))
	}
	return strings.Join(out, ", ")
}
