// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// majorVersion ends the import path of a package that is not called so.
var majorVersion = regexp.MustCompile(`[./]v[0-9]+$`)

// lookAtFiles has each file of Go looked at for calls that the rules forbid, tests or all others, but for what is in some folders.
func lookAtFiles(t *testing.T, tests bool, but []string, ruled map[string]func(name string) (instead string)) {
	t.Helper()
	root, seen := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(but, name) || path != root && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && strings.HasSuffix(name, "_test.go") == tests:
			seen++
			lookAtCalls(t, path, ruled)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 500 {
		t.Errorf("only %d files were looked at", seen)
	}
}

// lookAtCalls fails for each call in a file that the rules forbid. A rule is about one package, and says what to call instead of one of its
// functions, nothing if that may be called.
func lookAtCalls(t *testing.T, path string, ruled map[string]func(name string) (instead string)) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]func(string) string{} // by the name of the package in this file
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		rule := ruled[imported]
		if rule == nil {
			continue
		}
		name := filepath.Base(majorVersion.ReplaceAllString(imported, ""))
		if i.Name != nil {
			name = i.Name.Name
		}
		rules[name] = rule
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		called := call.Fun
		switch x := called.(type) { // of a generic function
		case *ast.IndexExpr:
			called = x.X
		case *ast.IndexListExpr:
			called = x.X
		}
		selector, ok := called.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && rules[of.Name] != nil {
			if instead := rules[of.Name](selector.Sel.Name); instead != "" {
				t.Errorf("%s calls %s.%s: use %s", files.Position(call.Pos()), of.Name, selector.Sel.Name, instead)
			}
		}
		return true
	})
}
