// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/internal/smallfile"
)

// Old is what the environment and the conf.yml of elf-io's balancing say, as far as it means something to our agent. What agent.yaml
// says goes before it, and the environment goes before conf.yml (balancing §15, §22).
type Old struct {
	Node       string // ENV_LOCAL_NODE_NAME
	IPv4, IPv6 *bool
	// RedirectLimit is a number of calls a second, 0 for no limit; nil if nothing is said.
	RedirectLimit *int
	Health, Log   string
	// Notes has a line for each thing that means nothing here, with what to do instead.
	Notes []Note
}

// Note is something that means nothing here, and what to do instead.
type Note struct{ What, Instead string }

// oldVariables have no meaning here; what to do instead.
func oldVariables() map[string]string {
	return map[string]string{
		"KUBECONFIG":                        "no Kubernetes is needed, and no credentials of it: remove the file from this host, enrol it with `fairlead pki enrol NAME --outside` (docs/outside.md)",
		"ENV_METRIC_HTTP_PORT":              "metrics are at the port of `health`, under /metrics",
		"ENV_ENABLED_METRIC":                "metrics are at the port of `health`, under /metrics, unless that is \"\"",
		"ENV_EBPF_LOG_LEVEL":                "sock.events says how many calls of each Service are logged a second",
		"ENV_GOPS_LISTEN_PORT":              "it has no port for gops; /metrics tells of the process",
		"ENV_PYROSCOPE_PUSH_SERVER_ADDRESS": "it sends profiles nowhere; leave it out",
		"ENV_NODE_ENTRY_INTERFACE_NAME":     "no interface is chosen by name for this",
	}
}

// oldKeys of conf.yml have no meaning here, likewise.
func oldKeys() map[string]string {
	const asks = "agents ask members alone, which agent.yaml lists; sources.kubernetes in controller.yaml says where members find the API server"
	return map[string]string{"apiServerHost": asks, "apiServerPort": asks}
}

// ReadOld reads the environment, and a conf.yml if path is not empty. Errors name what has a value that cannot be.
func ReadOld(getenv func(string) string, path string) (Old, error) {
	r, err := newOldReader(getenv, path)
	if err != nil {
		return Old{}, err
	}
	o := Old{Node: getenv("ENV_LOCAL_NODE_NAME")}
	o.IPv4, o.IPv6 = r.flag("enableIPv4", "ENV_ENABLE_IPV4"), r.flag("enableIPv6", "ENV_ENABLE_IPV6")
	if where, text := r.said("redirectQosLimit", "ENV_REDIRECT_QOS_LIMIT", "REDIRECT_QOS_LIMIT"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			r.bad("%s: %q is no number of calls a second up to %d; 0 is no limit", where, text, uint32(math.MaxUint32))
		}
		limit := int(n)
		o.RedirectLimit = &limit
	}
	o.Health, o.Log = r.port("ENV_HTTP_PORT"), r.level("ENV_LOG_LEVEL")
	o.Notes = append(r.variables(oldVariables()), r.keys(oldKeys(), "docs/agents.md lists what agent.yaml can say", "enableIPv4", "enableIPv6", "redirectQosLimit")...)
	return o, joinSorted(r.errs)
}

// oldReader reads what is said in the old way, and notes what cannot be.
type oldReader struct {
	getenv func(string) string
	path   string
	file   map[string]string // scalars of conf.yml
	errs   []error
}

func newOldReader(getenv func(string) string, path string) (*oldReader, error) {
	file, err := readOldFile(path)
	return &oldReader{getenv: getenv, path: path, file: file}, err
}

func (r *oldReader) bad(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// flag reads a switch; nil if nothing is said.
func (r *oldReader) flag(key, variable string) *bool {
	where, text := r.said(key, variable)
	if text == "" {
		return nil
	}
	v, err := strconv.ParseBool(strings.ToLower(text))
	if err != nil {
		r.bad("%s: %q is neither true nor false", where, text)
	}
	return &v
}

// port reads where to listen, on all addresses; empty if nothing is said.
func (r *oldReader) port(variable string) string {
	port := r.getenv(variable)
	if port == "" {
		return ""
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		r.bad("%s: %q is no port", variable, port)
	}
	return ":" + port
}

// level reads a log level; empty if nothing is said.
func (r *oldReader) level(variable string) string {
	level := strings.ToLower(r.getenv(variable))
	if level == "" {
		return ""
	}
	if _, err := Level(level); err != nil {
		r.bad("%s: %w", variable, err)
	}
	return level
}

// variables are notes of those that are set and mean nothing.
func (r *oldReader) variables(instead map[string]string) (notes []Note) {
	for _, name := range slices.Sorted(maps.Keys(instead)) {
		if r.getenv(name) != "" {
			notes = append(notes, Note{name, instead[name]})
		}
	}
	return notes
}

// keys are notes of those in conf.yml that are not heeded: known ones, and others, for which there is a list.
func (r *oldReader) keys(instead map[string]string, list string, heeded ...string) (notes []Note) {
	for _, key := range slices.Sorted(maps.Keys(r.file)) {
		if !slices.Contains(heeded, key) {
			notes = append(notes, Note{r.path + ": " + key, cmp.Or(instead[key], list)})
		}
	}
	return notes
}

// said gives the first thing that is said of a key, and where: by the environment, else by the file.
func (r *oldReader) said(key string, variables ...string) (where, text string) {
	for _, v := range variables {
		if text := strings.TrimSpace(r.getenv(v)); text != "" {
			return v, text
		}
	}
	return key, strings.TrimSpace(r.file[key])
}

// readOldFile reads the scalars of a conf.yml.
func readOldFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := smallfile.Read(path, smallfile.Most)
	if err != nil {
		return nil, fmt.Errorf("--config-path: %w", err)
	}
	var nodes map[string]yaml.Node
	if err := safeyaml.Decode(data, &nodes); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", path, oneLine(err))
	}
	out := map[string]string{}
	for key, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s: line %d: %s is no single value", path, n.Line, key)
		}
		out[key] = n.Value
		if n.Tag == "!!null" {
			out[key] = ""
		}
	}
	return out, nil
}

// under puts it where agent.yaml says nothing: into what the file is decoded over.
func (o Old) under(c *Agent) {
	c.Node = o.Node
	if o.Health != "" {
		c.Health = o.Health
	}
	if o.Log != "" {
		c.Log = o.Log
	}
	c.Sock = &Sock{IPv4: o.IPv4, IPv6: o.IPv6}
	if o.RedirectLimit != nil {
		c.Sock.RedirectLimit = *o.RedirectLimit
	}
}
