// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// folder is what the tests of a folder say, read once for all statements that name it.
type folder struct {
	text  string            // of all its files of tests
	tests map[string]string // by name: the comment on a test and its declaration
}

var folders = map[string]folder{}

var declared = regexp.MustCompile(`(?m)((?:^//.*\n)*)^func (Test\w+)\(`)

func testsIn(t *testing.T, path string) folder {
	t.Helper()
	if f, ok := folders[path]; ok {
		return f
	}
	files, err := filepath.Glob(filepath.Join(path, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	f := folder{tests: map[string]string{}}
	for _, file := range files {
		text := string(read(t, file))
		f.text += text
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			f.tests[m[2]] = m[0]
		}
	}
	folders[path] = f
	return f
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
