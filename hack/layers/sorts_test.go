// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sortedAlike are the folders of what members of different builds have to sort alike: the record would be another one, or what one leader
// planned would be planned anew by the next.
var sortedAlike = []string{"fsm", "api", "cluster"}

// Orders that tell all apart that is not the same. Those that are ours are tested by testkit.TellsApart.
var tellsAllApart = []string{"netip.Addr.Compare", "netip.AddrPort.Compare", "netip.Prefix.Compare", "world.ID.Compare", "comparePorts"}

// sortsOnce lists the files where something else is sorted of which no two are equal, of so much that a stable sort would take longer, or out
// of a map; and why no two are.
var sortsOnce = map[string]string{
	"api/desired/state.go":             "a state has each address once",
	"cluster/leader/guard_outside.go":  "subject.compare, which is tested",
	"cluster/leader/guard_policies.go": "subject.compare, which is tested",
	"cluster/leader/plan_nodeports.go": "each Service once, and its id comes last",
	"cluster/leader/plan_services.go":  "each Service once",
	"fsm/load.go":                      "each record once in an index, and its key is in what is sorted",
}

// How a sort leaves what its order calls equal is its own affair: another release of Go may do it otherwise. So what is sorted is told apart in
// full, or the sort is a stable one.
func TestSortsAreStableOrTellAllApart(t *testing.T) {
	root, seen, used := filepath.Join("..", ".."), 0, map[string]bool{}
	for _, folder := range sortedAlike {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			seen++
			name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			for _, at := range unstableSorts(t, path) {
				if used[name] = true; sortsOnce[name] == "" {
					t.Errorf("%s: the order may call different things equal: use a stable sort, or name why it does not", at)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 300 {
		t.Errorf("only %d files were looked at", seen)
	}
	for name := range sortsOnce {
		if !used[name] {
			t.Errorf("%s is named, and sorts nothing so any more", name)
		}
	}
}

// unstableSorts are where a file sorts by an order that is not known to tell all apart.
func unstableSorts(t *testing.T, path string) (found []token.Position) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch types.ExprString(call.Fun) {
		case "slices.SortFunc", "slices.SortedFunc":
			if slices.Contains(tellsAllApart, types.ExprString(call.Args[1])) {
				return true
			}
		case "sort.Slice", "sort.Sort":
		default:
			return true
		}
		found = append(found, files.Position(call.Pos()))
		return true
	})
	return found
}
