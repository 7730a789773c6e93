// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"fairlead.io/fairlead/cluster/pki"
)

// contextFileName is what context files are called.
const contextFileName = "context.yaml"

// defaultContext is where a context is looked for when nothing names one: $XDG_CONFIG_HOME/fairlead, else
// ~/.config/fairlead; empty if there is no home.
func defaultContext(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead", contextFileName)
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "fairlead", contextFileName)
	}
	return ""
}

// findGroup joins flags, environment and context file, in this order of precedence. A file named by --context
// is a flag: what the environment says about servers and certificates does not count beside it. A file that
// nobody named may be missing.
func (c *cli) findGroup() (pki.Context, error) {
	if c.contextFile != "" {
		file, err := pki.LoadContext(c.contextFile)
		if err != nil {
			return pki.Context{}, err
		}
		return checked(file.Overlay(c.flags))
	}
	given := pki.ContextFromEnv(c.getenv).Overlay(c.flags)
	if len(given.Servers) > 0 && given.CA != "" && given.Cert != "" && given.Key != "" {
		return checked(given) // nothing is left for a context to tell
	}
	path, named := c.getenv("FAIRLEAD_CONTEXT"), true
	if path == "" {
		path, named = defaultContext(c.getenv), false
	}
	if path == "" {
		return checked(given)
	}
	file, err := pki.LoadContext(path)
	if err != nil && (named || !errors.Is(err, fs.ErrNotExist)) {
		return pki.Context{}, err
	}
	return checked(file.Overlay(given))
}

func checked(found pki.Context) (pki.Context, error) { return found, found.Validate() }
