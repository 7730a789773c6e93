// SPDX-License-Identifier: Apache-2.0

package steer

import "fmt"

// filterVersion is raised whenever the rules of the nftables table change, so that a newer agent makes it anew.
const filterVersion = 3

// marks are the bits that the rules of our nftables table set and look for. They are part of the name of these rules, a
// Filter, so that whoever finds the table knows them.
type marks struct {
	in, out uint32 // Options.MarkIn and MarkOut
	// former are bits that out had before, and that connections may still bear: whichever packet of one comes next,
	// the rules give the connection out instead. Zero: every connection bears out.
	former uint32
}

func (o Options) marks() marks { return marks{in: o.MarkIn, out: o.MarkOut} }

// back are the bits of answers to who did not come through the switch. No other packet has both marks.
func (m marks) back() uint32 { return m.in | m.out }

// filter names the rules that use these marks.
func (m marks) filter() string {
	id := fmt.Sprintf("v%d %#x %#x", filterVersion, m.in, m.out)
	if m.former != 0 {
		id += fmt.Sprintf(" after %#x", m.former)
	}
	return id
}

// marksOf reads the name of rules, of whatever version; ok is false if it is none.
func marksOf(filter string) (m marks, ok bool) {
	var version int
	n, _ := fmt.Sscanf(filter, "v%d %v %v after %v", &version, &m.in, &m.out, &m.former) // n tells as much
	return m, n == 3 || n == 4
}

// after gives the marks as they are to be while connections may bear those of a table that was found.
func (m marks) after(found string) marks {
	if had, ok := marksOf(found); ok {
		m.former = had.former
		if had.out != m.out {
			m.former |= had.out
		}
	}
	return m
}

// follow gives a rule for packets that a table marked which was found, as it is to be for these marks.
func (m marks) follow(r Rule, found string) Rule {
	had, ok := marksOf(found)
	switch {
	case !ok || r.Mask == 0:
	case r.Mask == had.back():
		r.Mark, r.Mask = m.back(), m.back()
	case r.Mask == had.in:
		r.Mark, r.Mask = m.in, m.in
	case r.Mask&(had.out|had.former) != 0:
		r.Mark, r.Mask = m.out, m.out
	}
	return r
}
