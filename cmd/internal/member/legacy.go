// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
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

// legacyPeers reads the neighbours of an old installation out of its config map, and tells of those that cannot be used.
func legacyPeers(c world.ConfigMap) (out []fsm.Peer, faults []error, err error) {
	text, ok := c.Get(legacyKey)
	if !ok {
		return nil, nil, fmt.Errorf("config map %s: no key %s", c.ID, legacyKey)
	}
	conf, err := legacy.Parse(legacyKey, []byte(text))
	if err != nil {
		return nil, nil, err
	}
	for _, f := range conf.Faults {
		faults = append(faults, f.Err)
	}
	for _, p := range conf.Peers {
		if p.Name == "" {
			p.Name = "bgp-" + strings.NewReplacer(":", "-").Replace(p.Address.String())
		}
		out = append(out, derive.Record(p, passwordFromTOML+p.Address.String()))
	}
	return out, faults, nil
}

// reviewLegacy tells what config_bgp.toml in its config map has that cannot be used, or is without effect.
func reviewLegacy(c *world.ConfigMap) (out []world.Problem) {
	text, _ := c.Get(legacyKey)
	if c.Name != legacyMap || text == "" {
		return nil
	}
	tell := func(line int, field, why, remedy string) {
		if field != "" {
			why = field + ": " + why
		}
		out = append(out, world.Problem{Severity: world.Degraded, Field: "data." + legacyKey, Why: fmt.Sprintf("line %d: %s", line, why), Remedy: remedy})
	}
	conf, err := legacy.Parse(legacyKey, []byte(text))
	if e := (*legacy.Error)(nil); errors.As(err, &e) {
		tell(e.Line, e.Field, e.Reason+": nothing of the file is used, and its neighbours stay as they were", e.Remedy)
		return out
	}
	for _, f := range conf.Faults {
		tell(f.Err.Line, f.Err.Field, f.Err.Reason+": this neighbour stays as it was, or comes with the mended file", f.Err.Remedy)
	}
	for _, w := range conf.Warnings {
		tell(w.Line, w.Field, w.Text, w.Remedy)
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
