// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/smallfile"
)

// legacyKey is the key of config_bgp.toml in its config map, and legacyMap the map's name.
const (
	legacyKey = "config_bgp.toml"
	legacyMap = "kube-gobgp-cfg"
)

// passwordFromTOML begins PasswordFrom of peers whose password is in config_bgp.toml; their address ends it.
const passwordFromTOML = legacyKey + "/"

// legacyPeers reads the neighbours of an old installation out of its config map.
func legacyPeers(c world.ConfigMap) ([]fsm.Peer, error) {
	text, ok := c.Get(legacyKey)
	if !ok {
		return nil, fmt.Errorf("config map %s: no key %s", c.ID, legacyKey)
	}
	conf, err := legacy.Parse(legacyKey, []byte(text))
	if err != nil {
		return nil, err
	}
	var out []fsm.Peer
	for _, p := range conf.Peers {
		if p.Name == "" {
			p.Name = "bgp-" + strings.NewReplacer(":", "-").Replace(p.Address.String())
		}
		out = append(out, derive.Record(p, passwordFromTOML+p.Address.String()))
	}
	return out, nil
}

// reviewLegacy tells what config_bgp.toml in its config map has that is without effect. Why a file cannot be used at all is the leader's
// to tell, which has to do without.
func reviewLegacy(c *world.ConfigMap) (out []world.Problem) {
	text, _ := c.Get(legacyKey)
	if c.Name != legacyMap || text == "" {
		return nil
	}
	conf, err := legacy.Parse(legacyKey, []byte(text))
	if err != nil {
		return nil
	}
	for _, w := range conf.Warnings {
		out = append(out, world.Problem{
			Severity: world.Degraded, Field: "data." + legacyKey, Why: fmt.Sprintf("line %d: %s: %s", w.Line, w.Field, w.Text), Remedy: w.Remedy,
		})
	}
	return out
}

// useLegacyGlobals reads the configured config_bgp.toml for what is a member's own: AS number, router id and port.
// What controller.yaml says itself counts first. Of what has no effect the source tells that shows the file's neighbours.
func (m *Member) useLegacyGlobals() error {
	b := &m.config.BGP
	if b.ConfigFile == "" {
		return nil
	}
	text, err := smallfile.Read(b.ConfigFile, smallfile.Most)
	if err != nil {
		return fmt.Errorf("bgp.configFile %s: cannot be read: %w", b.ConfigFile, err)
	}
	conf, err := legacy.Parse(b.ConfigFile, text)
	if err != nil {
		return err
	}
	if b.ASN == 0 {
		b.ASN, b.Port = conf.Global.ASN, int(conf.Global.ListenPort)
		if b.Port == 0 {
			b.Port = -1
		}
		if len(b.Listen) == 0 {
			b.Listen = conf.Global.ListenAddrs
		}
	}
	if !b.RouterID.IsValid() {
		b.RouterID = conf.Global.RouterID
	}
	return m.config.Validate()
}

// legacyFolder shows a config_bgp.toml as a folder with the config map that an old installation would have.
type legacyFolder struct{ path string }

// Open implements fs.FS; the file is read anew each time.
func (l legacyFolder) Open(name string) (fs.File, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return nil, err
	}
	text, err := smallfile.Read(l.path, smallfile.Most)
	if err != nil {
		return nil, err
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]string{"name": legacyMap, "namespace": "kube-system"},
		"data":     map[string]string{legacyKey: string(text)},
	})
	if err != nil {
		return nil, err
	}
	folder := fstest.MapFS{legacyKey + ".yaml": {Data: manifest, Mode: 0o600, ModTime: info.ModTime()}}
	return folder.Open(name)
}
