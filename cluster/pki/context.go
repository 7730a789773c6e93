// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/internal/smallfile"
)

// Context is how the command line finds a group. As a file:
//
//	servers: ["192.0.2.1:7443", "192.0.2.2:7443", "192.0.2.3:7443"]
//	ca: ca.crt          # relative to this file
//	cert: alice.crt
//	key: alice.key
type Context struct {
	Servers []string `json:"servers"` // host:port of members' APIs; any of them will do
	CA      string   `json:"ca"`
	Cert    string   `json:"cert"`
	Key     string   `json:"key"`
}

// LoadContext reads a context file. Errors name the file and the field.
func LoadContext(path string) (Context, error) {
	data, err := smallfile.Read(path, smallfile.Most)
	if err != nil {
		return Context{}, fmt.Errorf("context: %w", err)
	}
	var c Context
	if err := safeyaml.Unmarshal(data, &c); err != nil {
		return Context{}, fmt.Errorf("context %s: %w; it has servers, ca, cert and key", path, oneLine(safeyaml.Explain(data, &c, "json", err)))
	}
	for _, field := range []*string{&c.CA, &c.Cert, &c.Key} {
		if *field != "" && !filepath.IsAbs(*field) {
			*field = filepath.Join(filepath.Dir(path), *field)
		}
	}
	if err := c.checkServers(); err != nil {
		return Context{}, fmt.Errorf("context %s: %w", path, err)
	}
	return c, nil
}

// Save writes the context at once; paths below the file's folder are written relative, so that the folder can
// be moved.
func (c Context) Save(path string) error {
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write context %s: %w", path, err)
	}
	for _, field := range []*string{&c.CA, &c.Cert, &c.Key} {
		absolute, err := filepath.Abs(*field)
		if err != nil {
			return fmt.Errorf("write context %s: %w", path, err)
		}
		*field = absolute
		if relative, err := filepath.Rel(folder, absolute); err == nil && filepath.IsLocal(relative) {
			*field = relative
		}
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("write context %s: %w", path, err)
	}
	return replace(path, data, 0o600)
}

// ContextFromEnv reads FAIRLEAD_SERVER (several separated by commas), FAIRLEAD_CA, FAIRLEAD_CERT, FAIRLEAD_KEY.
func ContextFromEnv(getenv func(string) string) Context {
	c := Context{CA: getenv("FAIRLEAD_CA"), Cert: getenv("FAIRLEAD_CERT"), Key: getenv("FAIRLEAD_KEY")}
	for server := range strings.SplitSeq(getenv("FAIRLEAD_SERVER"), ",") {
		if server = strings.TrimSpace(server); server != "" {
			c.Servers = append(c.Servers, server)
		}
	}
	return c
}

// Overlay gives c with the fields that over has set.
func (c Context) Overlay(over Context) Context {
	if len(over.Servers) > 0 {
		c.Servers = over.Servers
	}
	for _, field := range []struct{ under, over *string }{{&c.CA, &over.CA}, {&c.Cert, &over.Cert}, {&c.Key, &over.Key}} {
		if *field.over != "" {
			*field.under = *field.over
		}
	}
	return c
}

// Validate tells what is missing, all at once.
func (c Context) Validate() error {
	var missing []string
	for _, field := range []struct {
		name string
		set  bool
	}{{"server", len(c.Servers) > 0}, {"ca", c.CA != ""}, {"cert", c.Cert != ""}, {"key", c.Key != ""}} {
		if !field.set {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("find the group: no %s; give --%s, FAIRLEAD_%s or a context file",
			strings.Join(missing, ", no "), missing[0], strings.ToUpper(missing[0]))
	}
	return c.checkServers()
}

// Files are the certificate files of the context.
func (c Context) Files() Files { return Files{CA: c.CA, Cert: c.Cert, Key: c.Key} }

func (c Context) checkServers() error {
	for i, server := range c.Servers {
		if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
			return fmt.Errorf("servers[%d]: %q is not host:port; the API's port is 7443 by default", i, server)
		}
	}
	return nil
}

// oneLine keeps errors of the YAML parser, which quote the input, to one line.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
