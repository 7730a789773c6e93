// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"slices"
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
	lookAtFiles(t, false, []string{"internal/safeyaml", "e2e", "sim", "hack"}, decodesYAML)
}
