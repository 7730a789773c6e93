// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/internal/smallfile"
)

// decode reads one YAML document strictly: a field that we do not know is an error with its line, since it is
// a typing mistake that would otherwise be silently without effect.
func decode(path string, into any) error {
	data, err := smallfile.Read(path, smallfile.Most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: does not exist; name the file with --config", path)
	case errors.Is(err, smallfile.ErrLarge):
		return err
	case err != nil:
		return fmt.Errorf("%s: cannot be read: %w", path, err)
	}
	if data, err = expand(data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch err := safeyaml.Decode(data, into); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: is empty", path)
	case err != nil:
		return fmt.Errorf("%s: %s", path, oneLine(safeyaml.Explain(data, into, "yaml", err)))
	}
	return nil
}

// variable is how a file names an environment variable, so that one file may serve many members or nodes.
var variable = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)\}`)

// expand puts the values of environment variables where a file names them.
func expand(data []byte) ([]byte, error) {
	var missing []string
	out := variable.ReplaceAllFunc(data, func(match []byte) []byte {
		name := string(match[2 : len(match)-1])
		value, ok := os.LookupEnv(name)
		if !ok || value == "" {
			missing = append(missing, name+": is not set in the environment; set it, or write its value")
		}
		return []byte(value)
	})
	if len(missing) > 0 {
		return nil, errors.New(sortedLine(missing))
	}
	return out, nil
}

// oneLine puts the several lines of a YAML error into one.
func oneLine(err error) string {
	lines := strings.Split(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.TrimPrefix(strings.Join(lines, " "), "unmarshal errors: ")
}

// sortedLine joins lines, each said once.
func sortedLine(lines []string) string {
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "; ")
}

// Levels are the names of log levels.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// Level gives the log level of a name.
func Level(name string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("%q is no log level; use debug, info, warn or error", name)
	}
	return l, nil
}
