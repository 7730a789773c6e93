// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every constant that names a reason is among Codes: who lists them, such as docs/why.md, forgets none.
func TestCodesAreAllThereAre(t *testing.T) {
	declared := map[Code]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				maps.Copy(declared, codesIn(t, g))
			}
		}
	}
	told := Codes()
	for _, code := range told {
		if _, ok := declared[code]; !ok {
			t.Errorf("%q is no constant's", code)
		}
		delete(declared, code)
	}
	for code, name := range declared {
		t.Errorf("%s (%q) is not among them", name, code)
	}
}

// codesIn are the codes that a declaration names: constants of type Code, and those of Explanation and fsm.Pending, by their names.
func codesIn(t *testing.T, g *ast.GenDecl) map[Code]string {
	out := map[Code]string{}
	for _, s := range g.Specs {
		spec := s.(*ast.ValueSpec)
		typed, _ := spec.Type.(*ast.Ident)
		for i, name := range spec.Names {
			named := strings.HasPrefix(name.Name, "Pending") || strings.HasPrefix(name.Name, "WaitsFor")
			if !named && (typed == nil || typed.Name != "Code") {
				continue
			}
			value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[Code(value)] = name.Name
		}
	}
	return out
}
