// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// decodesYAML lists, by package, the functions that decode YAML without a bound on what its aliases stand for.
var decodesYAML = map[string]func(name string) (instead string){
	"sigs.k8s.io/yaml":                                     boundedInstead("Marshal", "JSONToYAML"),
	"sigs.k8s.io/yaml/goyaml.v2":                           boundedInstead("Marshal", "NewEncoder"),
	"sigs.k8s.io/yaml/goyaml.v3":                           boundedInstead("Marshal", "NewEncoder"),
	"go.yaml.in/yaml/v2":                                   boundedInstead("Marshal", "NewEncoder"),
	"go.yaml.in/yaml/v3":                                   boundedInstead("Marshal", "NewEncoder"),
	"gopkg.in/yaml.v2":                                     boundedInstead("Marshal", "NewEncoder"),
	"gopkg.in/yaml.v3":                                     boundedInstead("Marshal", "NewEncoder"),
	"k8s.io/apimachinery/pkg/util/yaml":                    boundedInstead("NewYAMLReader"), // which cuts only
	"k8s.io/apimachinery/pkg/runtime/serializer/yaml":      boundedInstead(),
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming": boundedInstead(),
}

func boundedInstead(harmless ...string) func(string) string {
	return func(name string) string {
		if slices.Contains(harmless, name) {
			return ""
		}
		return "package internal/safeyaml"
	}
}

// YAML that somebody else wrote is decoded in one place, which bounds what it costs. Tests and simulations read their own.
func TestYAMLIsDecodedInOnePlace(t *testing.T) {
	root, seen := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"internal/safeyaml", "e2e", "sim", "hack"}, name) || path != root && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			seen++
			lookAtCalls(t, path, decodesYAML)
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
