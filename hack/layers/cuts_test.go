// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cutsBytes lists the files where a text is cut to a number of bytes, and why that is between characters, or may be within one.
var cutsBytes = map[string]string{
	"fsm/fit.go":        "fsm.Text, which looks for where a character begins",
	"sim/kube/write.go": "who manages fields, as API servers cut it",
}

// What is cut within a character is no text any more: the API server refuses an Event with it, and no message takes it. So texts are cut by
// fsm.Text, or what is left of a last character is taken away where they are (strings.ToValidUTF8, with nothing in its place: U+FFFD makes them
// longer than they may be), or the place is named above.
func TestTextsAreCutBetweenCharacters(t *testing.T) {
	checker, used := newTypeChecker(t), map[string]bool{}
	for _, folder := range checker.folders(t) {
		for _, at := range cutsOf(checker.check(folder), checker.files) {
			name := strings.TrimPrefix(filepath.ToSlash(at.Filename), "../../")
			if used[name] = true; cutsBytes[name] == "" {
				t.Errorf("%s: a text is cut to a number of bytes, which may be within a character: use fsm.Text, or name why it is none", at)
			}
		}
	}
	if n := len(checker.done); n < 100 {
		t.Errorf("only %d packages were looked at", n)
	}
	for name := range cutsBytes {
		if !used[name] {
			t.Errorf("%s is named, and cuts no text so any more", name)
		}
	}
}

// The rule itself: what it is to find, and what it is to leave alone.
func TestCutsOfTextsAreFound(t *testing.T) {
	checker := newTypeChecker(t)
	const source = `package p

import (
	"fmt"
	"strings"
)

type named string

type object struct{ Name, Note string }

const most = 10

func found(s string, err error, o *object, of map[string]string, n named) {
	_ = s[:min(len(s), most)]
	_ = o.Note[0:min(most, len(o.Note))]
	_ = n[:min(len(n), most)]
	if len(s) > most {
		s = s[:most] + "..."
	}
	if text := err.Error(); len(text) >= most {
		_ = text[:most]
	}
	if text := fmt.Sprint(o); most < len(text) {
		_ = text[:most]
	}
	for _, text := range of {
		_ = text[:min(len(text), most)]
	}
	_ = strings.ToValidUTF8(s[:min(len(s), most)], "\uFFFD")
}

func others(s string, list []string, bytes []byte, i int) {
	_ = list[:min(len(list), most)]
	_ = bytes[:min(len(bytes), most)]
	_ = strings.ToValidUTF8(s[:min(len(s), most)], "")
	_ = s[:i]
	_ = s[:len(s)-1]
	_ = s[min(len(s), most):]
	if len(list) > most {
		_ = list[:most]
	}
	if len(list) > i {
		_ = s[:i]
	}
}
`
	file, err := parser.ParseFile(checker.files, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, at := range cutsOf(checker.checkFiles("p", []*ast.File{file}), checker.files) {
		lines = append(lines, at.Line)
	}
	if want := []int{15, 16, 17, 19, 22, 25, 28, 30}; !slices.Equal(lines, want) {
		t.Errorf("lines %v, want %v", lines, want)
	}
}

// checkedPackage is a package as far as its types are known: those of others than ours and the standard library's plainest are not.
type checkedPackage struct {
	types *types.Package
	files []*ast.File
	info  *types.Info
}

// cutsOf are where a package cuts a text to a number of bytes: where it is longer than that.
func cutsOf(p *checkedPackage, files *token.FileSet) (found []token.Position) {
	for _, file := range p.files {
		var within []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				within = within[:len(within)-1]
				return true
			}
			if cut, ok := n.(*ast.SliceExpr); ok && isText(p.info.TypeOf(cut.X)) && cut.High != nil && isBound(cut, within) && !isMended(cut, within) {
				found = append(found, files.Position(cut.Pos()))
			}
			within = append(within, n)
			return true
		})
	}
	return found
}

func isText(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// isBound tells whether what is cut ends where it may be no longer: min(len(X), most), or most where len(X) is more.
func isBound(cut *ast.SliceExpr, within []ast.Node) bool {
	length, high := "len("+types.ExprString(cut.X)+")", types.ExprString(cut.High)
	if call, ok := cut.High.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "min" {
		return slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return types.ExprString(a) == length })
	}
	return slices.ContainsFunc(within, func(n ast.Node) bool {
		branch, ok := n.(*ast.IfStmt)
		if !ok {
			return false
		}
		found := false
		ast.Inspect(branch.Cond, func(n ast.Node) bool {
			if c, ok := n.(*ast.BinaryExpr); ok && slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ}, c.Op) {
				x, y := types.ExprString(c.X), types.ExprString(c.Y)
				found = found || x == length && y == high || y == length && x == high
			}
			return true
		})
		return found
	})
}

// isMended tells whether what is left of a last character is taken away.
func isMended(cut *ast.SliceExpr, within []ast.Node) bool {
	call, ok := within[len(within)-1].(*ast.CallExpr)
	return ok && types.ExprString(call.Fun) == "strings.ToValidUTF8" && call.Args[0] == cut && types.ExprString(call.Args[1]) == `""`
}

// typeChecker finds the types of our own packages from their source, without those of libraries.
type typeChecker struct {
	files *token.FileSet
	plain types.Importer
	done  map[string]*checkedPackage
	build build.Context
}

// plainPackages are those of the standard library that give texts.
var plainPackages = []string{"bytes", "cmp", "errors", "fmt", "maps", "path", "slices", "strconv", "strings"}

const modulePath = "fairlead.io/fairlead/"

func newTypeChecker(t *testing.T) *typeChecker {
	t.Helper()
	c := &typeChecker{files: token.NewFileSet(), done: map[string]*checkedPackage{}, build: build.Default}
	c.build.GOOS, c.build.GOARCH, c.build.CgoEnabled = "linux", "amd64", false
	root, err := exec.Command("go", "env", "GOROOT").Output() // a program that was built with -trimpath does not know
	if err != nil {
		t.Fatal(err)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root)) // which is what the importer goes by
	c.plain = importer.ForCompiler(c.files, "source", nil)
	return c
}

// folders are those of all packages.
func (c *typeChecker) folders(t *testing.T) (out []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".go"):
			if folder, _ := filepath.Rel(root, filepath.Dir(path)); !slices.Contains(out, filepath.ToSlash(folder)) {
				out = append(out, filepath.ToSlash(folder))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// check gives the package of a folder.
func (c *typeChecker) check(folder string) *checkedPackage {
	if p, ok := c.done[folder]; ok {
		return p
	}
	c.done[folder] = &checkedPackage{types: types.NewPackage(modulePath+folder, filepath.Base(folder))} // should it import itself
	names, _ := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
	var files []*ast.File
	for _, name := range names {
		if match, err := c.build.MatchFile(filepath.Dir(name), filepath.Base(name)); err != nil || !match || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if file, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution); err == nil {
			files = append(files, file)
		}
	}
	c.done[folder] = c.checkFiles(modulePath+folder, files)
	return c.done[folder]
}

func (c *typeChecker) checkFiles(path string, files []*ast.File) *checkedPackage {
	p := &checkedPackage{files: files, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	config := types.Config{Importer: c, FakeImportC: true, Error: func(error) {}} // of libraries nothing is known
	p.types, _ = config.Check(path, c.files, files, p.info)
	return p
}

// Import implements types.Importer.
func (c *typeChecker) Import(path string) (*types.Package, error) {
	if folder, ours := strings.CutPrefix(path, modulePath); ours {
		if p := c.check(folder).types; p != nil {
			return p, nil
		}
	}
	if slices.Contains(plainPackages, path) {
		return c.plain.Import(path)
	}
	return nil, errors.New("not looked at")
}
