// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/k8s/takeover"
)

// takenOver is what `fairlead migrate lbcf` prints.
type takenOver struct {
	takeover.Report
	DryRun bool `json:"dryRun"`
	// Done are the steps that were carried out, WayBack is how LBCF gets its objects again.
	Done    []string `json:"done"`
	WayBack []string `json:"wayBack"`
	all     bool
}

// WriteTable tells numbers first, then what is not simply adopted.
func (t takenOver) WriteTable(w io.Writer) error {
	for _, part := range []func(io.Writer) error{t.writeSummary, t.writeLoadBalancers, t.writeRecords, t.writeRest, t.writeEnd} {
		if err := part(w); err != nil {
			return err
		}
	}
	return nil
}

func (t takenOver) writeSummary(w io.Writer) error {
	states := map[takeover.State]int{}
	for _, lb := range t.LoadBalancers {
		states[lb.State]++
	}
	var verdicts []string
	for _, v := range takeover.Verdicts() {
		if n := t.Count()[v]; n > 0 {
			verdicts = append(verdicts, fmt.Sprintf("%d %s", n, v))
		}
	}
	running := t.Running
	if running == "" {
		running = "no"
	}
	return output.WriteFields(w,
		[2]string{"LBCF runs", running},
		[2]string{"handed over", t.HandedOver},
		[2]string{"drivers", fmt.Sprint(len(t.Drivers))},
		[2]string{"load balancers", fmt.Sprintf("%d: %d created, %d not created yet, %d deleting", len(t.LoadBalancers),
			states[takeover.Created], states[takeover.NotCreated], states[takeover.Deleting])},
		[2]string{"backend groups", fmt.Sprint(len(t.Groups))},
		[2]string{"binds", fmt.Sprint(len(t.Binds))},
		[2]string{"backend records", strings.TrimSuffix(fmt.Sprintf("%d: %s", len(t.Records), strings.Join(verdicts, ", ")), ": ")},
	)
}

// section writes a title and rows; nothing without rows.
func section(w io.Writer, title string, header []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", title); err != nil {
		return err
	}
	return output.WriteRows(w, header, rows)
}

func (t takenOver) writeLoadBalancers(w io.Writer) error {
	var rows [][]string
	for _, lb := range t.LoadBalancers {
		rows = append(rows, []string{lb.Name, lb.Driver, string(lb.State), lb.Then})
	}
	return section(w, "load balancers", []string{"NAME", "DRIVER", "STATE", "THEN"}, rows)
}

func (t takenOver) writeRecords(w io.Writer) error {
	var groups, rows [][]string
	for _, g := range t.Groups {
		groups = append(groups, []string{"BackendGroup " + g.Name, fmt.Sprint(g.Records), fmt.Sprint(g.Adopted)})
	}
	for _, b := range t.Binds {
		groups = append(groups, []string{"Bind " + b.Name, fmt.Sprint(b.Records), fmt.Sprint(b.Adopted)})
	}
	if err := section(w, "backends by owner", []string{"OWNER", "RECORDS", "ADOPTED"}, groups); err != nil {
		return err
	}
	title := "records that are not simply adopted"
	if t.all {
		title = "records"
	}
	for _, r := range t.Records {
		if t.all || r.Verdict != takeover.Adopted {
			rows = append(rows, []string{r.Name, r.Owner, r.LoadBalancer, r.Address, string(r.Verdict), r.Why})
		}
	}
	return section(w, title, []string{"NAME", "OWNER", "LOAD BALANCER", "ADDRESS", "VERDICT", "WHY"}, rows)
}

func (t takenOver) writeRest(w io.Writer) error {
	var drivers, findings, changes [][]string
	for _, d := range t.Drivers {
		if len(d.Missing) > 0 {
			drivers = append(drivers, []string{d.Name, d.URL, strings.Join(d.Missing, ", ")})
		}
	}
	for _, f := range t.Findings {
		findings = append(findings, []string{f.Object, f.What, f.Then})
	}
	for _, list := range [][]takeover.Difference{t.Definitions, t.Configurations} {
		for _, d := range list {
			if len(d.Changes) > 0 {
				changes = append(changes, []string{d.Name, strings.Join(d.Changes, ", ")})
			}
		}
	}
	if err := section(w, "drivers that do not list every webhook (10 s each; the objects stay as they are)", []string{"NAME", "URL", "MISSING"}, drivers); err != nil {
		return err
	}
	if err := section(w, "please look at", []string{"OBJECT", "WHAT", "THEN"}, findings); err != nil {
		return err
	}
	return section(w, "definitions and admission that are not as Fairlead's", []string{"NAME", "DIFFERENT"}, changes)
}

func (t takenOver) writeEnd(w io.Writer) error {
	text := "\nNothing was changed.\n"
	if !t.DryRun {
		text = "\nDone:\n" + bullets(t.Done)
	}
	_, err := io.WriteString(w, text+"\nThe way back:\n"+bullets(t.WayBack))
	return err
}

func bullets(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "- %s\n", output.Clean(line))
	}
	return b.String()
}
