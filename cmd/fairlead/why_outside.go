// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/api/records"
)

// outside writes an object of outside load balancers.
func (t *whyText) outside(o *records.WhyOutside) {
	of := ""
	if o.Driver != "" {
		of = " of driver " + o.Driver
	}
	t.line("%s %s%s: %s.", o.Kind, o.Name, of, o.Summary)
	for _, r := range o.Reasons {
		t.reason("  ", r)
	}
	if o.Call != nil {
		t.line("  next call: %s", callText(o.Call))
	}
	var rows [][]string
	for i := range o.Backends {
		b := &o.Backends[i]
		last := ""
		if b.Call != nil {
			last = b.Call.Last
		}
		rows = append(rows, []string{b.Target, b.LoadBalancer, b.Driver, b.Address, b.State, callText(b.Call), last})
	}
	t.rows("Backends:", []string{"BACKEND", "ON", "DRIVER", "ADDRESS", "STATE", "NEXT-CALL", "LAST-ANSWER"}, rows)
	rows = nil
	for _, a := range o.Unregistered {
		rows = append(rows, []string{a.Pod, a.Text + " [" + a.Code + "]"})
	}
	t.rows("Pods that are not registered:", []string{"POD", "WHY"}, rows)
	t.history(o.History)
}

// callText is a call in words.
func callText(c *records.WhyCall) string {
	if c == nil {
		return ""
	}
	text := c.Action + " " + c.Progress
	switch {
	case c.Progress == records.CallDue && c.DueInMs == 0:
		text = c.Action + " now"
	case c.Progress == records.CallDue:
		text = c.Action + " in " + (time.Duration(c.DueInMs) * time.Millisecond).String()
	}
	if c.NotBefore != "" {
		text += ", as its driver asked, not before " + c.NotBefore
	}
	if c.Attempts > 0 {
		text += fmt.Sprintf(", failed %d times", c.Attempts)
	}
	if c.Unsettled {
		text += ", an earlier one of unknown outcome"
	}
	return text
}
