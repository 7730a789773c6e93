// SPDX-License-Identifier: Apache-2.0

package member

import (
	"os"
	"strings"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// secretsOf finds the passwords of peers where their PasswordFrom says: in config_bgp.toml, in a BGPPeer as this
// member's own sources show it, or elsewhere, in a Secret or a file.
func secretsOf(c config.BGP, worlds func() []world.World, elsewhere derive.Secrets) derive.Secrets {
	return func(peer bgp.Peer, from string) (bgp.Secret, bool) {
		if address, ok := strings.CutPrefix(from, passwordFromTOML); ok {
			return passwordInTOML(c.ConfigFile, address)
		}
		if password, ok := passwordInObject(worlds(), from); ok {
			return password, true
		}
		return elsewhere(peer, from)
	}
}

// namedElsewhere lists the passwords of members' peers that are in Secrets or files.
func namedElsewhere(state *fsm.State, worlds func() []world.World) (names []string) {
	shown := worlds()
	for _, p := range fsm.List[*fsm.Peer](state.Read(), fsm.TablePeers) {
		_, inObject := passwordInObject(shown, p.PasswordFrom)
		if p.PasswordFrom != "" && !p.Nodes.Speak && !inObject && !strings.HasPrefix(p.PasswordFrom, passwordFromTOML) {
			names = append(names, p.PasswordFrom)
		}
	}
	return names
}

func passwordInObject(worlds []world.World, from string) (bgp.Secret, bool) {
	for _, w := range worlds {
		for _, p := range w.Peers {
			if p.Password != "" && from == leader.PasswordName(p.Name) {
				return bgp.Secret(p.Password.Reveal()), true
			}
		}
	}
	return "", false
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
