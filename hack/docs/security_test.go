// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm/world"
)

// SECURITY.md says of each kind of object that is read what a tenant can do by it.
func TestSecuritySaysOfEachKindWhatATenantCanDo(t *testing.T) {
	page := string(read(t, filepath.Join(root, "SECURITY.md")))
	_, page, found := strings.Cut(page, "\n## Each kind, to a tenant\n")
	if !found {
		t.Fatal("SECURITY.md has no such section")
	}
	page, _, _ = strings.Cut(page, "\n## ")
	var kinds []string
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.TrimSpace(cells[2]) != "" {
			kinds = append(kinds, strings.FieldsFunc(cells[1], func(r rune) bool { return r == ',' || r == ' ' })...)
		}
	}
	for _, kind := range world.Kinds() {
		if !slices.Contains(kinds, string(kind)) {
			t.Errorf("SECURITY.md does not say what a tenant can do by a %s", kind)
		}
	}
}
