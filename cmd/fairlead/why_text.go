// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// shownSteps is how many of the newest transitions a person sees; all of them are in JSON and YAML.
const shownSteps = 12

// WriteTable writes the answer for people, Service by Service.
func (e explanation) WriteTable(w io.Writer) error {
	t := &whyText{}
	for i := range e.Services {
		if i > 0 {
			t.line("")
		}
		t.service(&e.Services[i])
	}
	for i := range e.Outside {
		t.outside(&e.Outside[i])
	}
	t.line("")
	t.answered(&e.Why)
	if t.err != nil {
		return t.err
	}
	_, err := t.b.WriteTo(w)
	return err
}

// whyText is the text as far as it is written. Names come from elsewhere, so every line is cleaned.
type whyText struct {
	b   bytes.Buffer
	err error
}

func (t *whyText) line(format string, args ...any) {
	_, _ = fmt.Fprintln(&t.b, output.Clean(fmt.Sprintf(format, args...))) // a buffer takes everything
}

// rows writes a table below a title, if there is anything in it.
func (t *whyText) rows(title string, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	t.line("")
	t.line("%s", title)
	if err := output.WriteRows(&t.b, header, rows); err != nil {
		t.err = err
	}
}

func (t *whyText) answered(d *records.Why) {
	switch {
	case d.Doubt != "":
		t.line("Answered by %s at revision %s. It may stand otherwise by now: %s.", d.AnsweredBy, revisionText(d.Revision), d.Doubt)
		if d.LastContactMs == nil {
			t.line("%s has not been in touch with the group since it started.", d.AnsweredBy)
		} else {
			t.line("%s was in touch with the group %d ms ago.", d.AnsweredBy, *d.LastContactMs)
		}
	default:
		t.line("Answered by %s, which leads, at revision %s.", d.AnsweredBy, revisionText(d.Revision))
	}
	if d.Quarantine {
		t.line("The group is in quarantine after a restore: nothing is removed or given out until every source was read in full.")
	}
	for _, s := range d.Sources {
		if !s.Usable {
			t.line("Source %s is not acted on: %s.", s.Name, s.Why)
		}
	}
}

func (t *whyText) service(s *records.WhyService) {
	t.line("Service %s (%s): %s.", s.Name, s.State, s.Summary)
	for _, r := range s.Reasons {
		t.reason("  ", r)
	}
	for _, p := range s.Problems {
		t.line("  as it is written: %s", p)
	}
	for i := range s.Addresses {
		t.address(&s.Addresses[i])
	}
	var rows [][]string
	for _, p := range s.Pending {
		rows = append(rows, []string{p.On, p.Name, maybeText(p.Since), p.What})
	}
	t.rows("Waited for:", []string{"ON", "NAME", "SINCE", "WHAT"}, rows)
	t.history(s.History)
}

func (t *whyText) reason(indent string, r records.Reason) {
	t.line("%s%s [%s]", indent, r.Text, r.Code)
	if r.Remedy != "" {
		t.line("%s  to do: %s", indent, r.Remedy)
	}
}

func (t *whyText) address(a *records.WhyAddress) {
	t.line("")
	t.line("%s: %s [%s]", a.Address, a.From.Text, a.From.Code)
	if len(a.SharedWith) > 0 {
		t.line("  shared with %s, which agreed on %q", strings.Join(a.SharedWith, ", "), a.SharingKey)
	}
	for _, r := range a.Reasons {
		t.reason("  ", r)
	}
	var members, peers []string
	for _, m := range a.Members {
		members = append(members, fmt.Sprintf("%s (%d)", m.Member, m.Announces))
	}
	for _, p := range a.Peers {
		text := p.Name + " " + p.Address
		if p.Interface != "" {
			text = p.Name + " interface " + p.Interface
		}
		if p.Session != "" {
			text += " " + p.Session
		}
		peers = append(peers, text)
	}
	t.line("  next hops on the wire, by member: %s", joinedOrNone(members))
	t.line("  to the peers: %s", joinedOrNone(peers))
	t.nodes(a.Nodes)
}

func joinedOrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// nodes writes the nodes of an address. Those that are no next hops, and all of the same reason, share a line.
func (t *whyText) nodes(nodes []records.WhyNode) {
	var rows [][]string
	at, remedies := map[string]int{}, []records.Reason{}
	said := map[string]bool{}
	for _, n := range nodes {
		state := n.State
		if n.Failed {
			state += ", failed"
		}
		if n.State == records.NodeNone {
			if i, ok := at[n.Text]; ok {
				rows[i][0] += "," + n.Node
				continue
			}
			at[n.Text] = len(rows)
		}
		rows = append(rows, []string{n.Node, n.Address, state, strings.TrimSpace(maybeText(n.Since) + " " + n.Time), n.Text + " [" + n.Code + "]"})
		if n.Remedy != "" && !said[n.Remedy] {
			said[n.Remedy] = true
			remedies = append(remedies, n.Reason)
		}
	}
	for i := range rows {
		if names := strings.Split(rows[i][0], ","); len(names) > 1 {
			rows[i][0], rows[i][1], rows[i][3] = namesText(names), "", ""
		}
	}
	if err := output.WriteRows(&t.b, []string{"NODE", "NEXT-HOP", "STATE", "SINCE", "WHY"}, rows); err != nil {
		t.err = err
	}
	for _, r := range remedies {
		t.line("  [%s] to do: %s", r.Code, r.Remedy)
	}
}

func namesText(names []string) string {
	text := strings.Join(names[:min(len(names), shownElements)], ",")
	if more := len(names) - shownElements; more > 0 {
		text += fmt.Sprintf(",… %d more", more)
	}
	return text
}

func (t *whyText) history(steps []records.WhyTransition) {
	title := "Last changes, oldest first:"
	if more := len(steps) - shownSteps; more > 0 {
		title = fmt.Sprintf("The last %d of %d changes that are kept, oldest first:", shownSteps, len(steps))
		steps = steps[more:]
	}
	var rows [][]string
	for _, s := range steps {
		rows = append(rows, []string{s.Time, revisionText(s.Revision), s.Of, s.Change, s.Reason})
	}
	t.rows(title, []string{"TIME", "REVISION", "OF", "CHANGE", "REASON"}, rows)
}

func revisionText(r records.Revision) string { return revision(r).String() }

func maybeText(r *records.Revision) string {
	if r == nil {
		return ""
	}
	return revisionText(*r)
}
