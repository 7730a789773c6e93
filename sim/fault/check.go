// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Check tells what is wrong with a fault: which field, why, and what to do.
func (c Cast) Check(f Fault) error {
	k, ok := Find(f.Kind)
	if !ok {
		return fmt.Errorf("kind: %q is unknown; choose one of %s", f.Kind, strings.Join(names(), ", "))
	}
	switch {
	case f.At < 0:
		return fmt.Errorf("at: %s is before the beginning; write 0s or later", f.At)
	case f.For < 0:
		return fmt.Errorf("for: %s is negative; write how long it lasts", f.For)
	}
	if err := c.checkOn(k, f); err != nil {
		return err
	}
	return f.With.Check(k.Name, k.Parameters, c.All())
}

func (c Cast) checkOn(k Kind, f Fault) error {
	var may []string
	for _, r := range k.On.Roles {
		may = append(may, c.role(r)...)
	}
	for i, name := range f.On {
		switch {
		case !slices.Contains(may, name) && slices.Contains(c.All(), name):
			return fmt.Errorf("who[%d]: %s cannot befall %s; choose of %s", i, f.Kind, name, list(may))
		case !slices.Contains(may, name):
			return fmt.Errorf("who[%d]: %q does not exist; choose of %s", i, name, list(may))
		case slices.Contains(f.On[:i], name):
			return fmt.Errorf("who[%d]: %s is there already; name each once", i, name)
		}
	}
	if len(f.On) < k.On.Least {
		return fmt.Errorf("who: %s has to befall somebody; choose of %s", f.Kind, list(may))
	}
	return nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// names lists the names of all kinds.
func names() (out []string) {
	for _, k := range All() {
		out = append(out, k.Name)
	}
	return out
}

// plurals stand for everybody who plays a part.
var plurals = map[string]Role{"members": Member, "nodes": Node, "switches": Switch, "drivers": Driver}

// whom reads a list of machines, which was checked.
func (c Cast) whom(words []string) (out []string) {
	for _, word := range words {
		if role, all := plurals[word]; all {
			out = append(out, c.role(role)...)
		} else {
			out = append(out, word)
		}
	}
	return out
}
