// SPDX-License-Identifier: Apache-2.0

package member

import (
	"os"
	"path/filepath"
	"strings"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
	"fairlead.io/fairlead/fsm/world"
)

// secretsOf finds the passwords of peers where their PasswordFrom says: in config_bgp.toml, in a BGPPeer as this
// member's own sources show it, in a Secret, or in a file of the password folder, which a name never leads out of.
func secretsOf(c config.BGP, worlds func() []world.World, inSecret derive.Secrets) derive.Secrets {
	return func(from string) (bgp.Secret, bool) {
		if address, ok := strings.CutPrefix(from, passwordFromTOML); ok {
			return passwordInTOML(c.ConfigFile, address)
		}
		for _, w := range worlds() {
			for _, p := range w.Peers {
				if p.Password != "" && from == leader.PasswordName(p.Name) {
					return bgp.Secret(p.Password.Reveal()), true
				}
			}
		}
		if _, _, ok := world.ParsePasswordSecret(from); ok {
			if password, ok := inSecret(from); ok {
				return password, true
			}
		}
		if c.PasswordDir == "" || !filepath.IsLocal(from) {
			return "", false
		}
		b, err := os.ReadFile(filepath.Join(c.PasswordDir, from))
		return bgp.Secret(strings.TrimSpace(string(b))), err == nil
	}
}

func passwordInTOML(path, address string) (bgp.Secret, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	conf, err := legacy.Parse(path, text)
	if err != nil {
		return "", false
	}
	for _, p := range conf.Peers {
		if p.Address.String() == address {
			return p.Password, p.Password != ""
		}
	}
	return "", false
}
