// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// Filter chooses events. Its zero value takes all of them.
type Filter struct {
	Words       []string      // all of them occur in the sentence of the event or in one of its fields; case does not matter
	Lanes       []string      // one of these lanes, or a message from one of them
	Kinds       []string      // one of these kinds, as Kinds names them
	From, Until time.Duration // From <= time < Until; Until 0 is the end
}

// Check finds what no event can match.
func (f Filter) Check() error {
	for _, k := range f.Kinds {
		if !slices.Contains(Kinds(), k) {
			return fmt.Errorf("kind %q: no such kind of event; there are %s", k, strings.Join(Kinds(), ", "))
		}
	}
	return nil
}

// Takes tells whether an event is chosen.
func (f Filter) Takes(e event.Stamped) bool {
	if e.At < f.From || f.Until > 0 && e.At >= f.Until {
		return false
	}
	if len(f.Lanes) > 0 && !slices.Contains(f.Lanes, e.Lane()) {
		if m, ok := e.Event.(event.Message); !ok || !slices.Contains(f.Lanes, m.From) {
			return false
		}
	}
	if len(f.Kinds) == 0 && len(f.Words) == 0 {
		return true
	}
	kind, fields := Describe(e)
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, kind) {
		return false
	}
	text := strings.ToLower(Sentence(e))
	for _, field := range fields {
		text += "\n" + strings.ToLower(field.Value)
	}
	return !slices.ContainsFunc(f.Words, func(word string) bool { return !strings.Contains(text, strings.ToLower(word)) })
}

// WriteText writes one line for each chosen event: time, number, kind, and what happened in human words. A line of its
// own says what is missing, and where a rule was broken. Contents of Kubernetes Secrets are left out.
func WriteText(w io.Writer, t Trace, f Filter) error {
	if err := f.Check(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if missing := t.Missing(); missing != "" {
		fmt.Fprintf(out, "# %s\n", missing)
	}
	broken := t.About.Violation
	for e := range t.Events() {
		if broken != nil && broken.before(e) {
			writeViolation(out, *broken)
			broken = nil
		}
		if e = withoutSecrets(e); f.Takes(e) {
			kind, _ := Describe(e)
			fmt.Fprintf(out, "%12s %7d %-12s %s\n", Clock(e.At), e.Number, kind, Sentence(e))
			if a, ok := e.Event.(event.Applied); ok {
				fmt.Fprintf(out, "%34s%s\n", "", oneLine.Replace(EntryText(a.Entry)))
			}
		}
	}
	if broken != nil {
		writeViolation(out, *broken)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write trace as text: %w", err)
	}
	return nil
}

// before tells whether the rule was broken before an event: the one that broke it comes first.
func (v Violation) before(e event.Stamped) bool {
	return e.At > v.At || v.Number > 0 && e.Number > v.Number
}

func writeViolation(w io.Writer, v Violation) {
	fmt.Fprintf(w, "%12s %7s %-12s %s\n", Clock(v.At), "", "VIOLATION", oneLine.Replace(v.Rule+": "+v.Sentence))
}

// EntryText says what a log entry asks for: its commands with who asked and why. Records hold no secrets, and so do
// entries.
func EntryText(entry []byte) string {
	if len(entry) == 0 {
		return "no command"
	}
	epoch, proposals, err := fsm.DecodeEntry(entry)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	lines := []string{fmt.Sprintf("epoch %d", epoch)}
	for _, p := range proposals {
		line := reflect.TypeOf(p.Command).Elem().Name()
		if p.Actor != "" {
			line += " by " + p.Actor
		}
		if p.Reason != "" {
			line += ", " + p.Reason
		}
		lines = append(lines, line)
		if fields, err := json.Marshal(p.Command); err == nil && string(fields) != "{}" {
			lines = append(lines, "  "+string(fields))
		}
	}
	return strings.Join(lines, "\n")
}
