// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/dataplane/bgp/testswitch"
	"fairlead.io/fairlead/internal/freeport"
)

// groupASN is the AS of the members; the built-in switch has its own.
const groupASN = 65000

// group is the members of one dev process. Each can be stopped and started again over its own folder.
type group struct {
	version string
	log     *slog.Logger
	sw      *testswitch.Switch
	configs []config.Controller

	mu      sync.Mutex
	running map[string]*runningMember
	failed  chan error
}

type runningMember struct {
	*member.Member
	stop func()
	done chan struct{}
}

// newGroup makes certificates and configurations for n members below dir; the folder of an earlier run is used
// again. Ports are drawn once and kept, so that members find each other after a restart.
func newGroup(dir string, n int, manifests []string, version string, sw *testswitch.Switch, log *slog.Logger) (*group, error) {
	g := &group{version: version, log: log, sw: sw, running: map[string]*runningMember{}, failed: make(chan error, n)}
	ports, err := keptPorts(filepath.Join(dir, "ports.json"), 2*n)
	if err != nil {
		return nil, err
	}
	var members []config.Member
	for i := range n {
		members = append(members, config.Member{
			Name: fmt.Sprintf("m%d", i+1), Raft: loopback(ports[2*i]), API: loopback(ports[2*i+1]),
		})
	}
	for i, m := range members {
		files, err := issue(dir, pki.Member, m.Name)
		if err != nil {
			return nil, err
		}
		c := config.Controller{
			Name: m.Name, DataDir: filepath.Join(dir, m.Name), FloorDir: filepath.Join(dir, "floors"), Members: members,
			Listen:         config.Listen{API: m.API, Raft: m.Raft},
			TLS:            config.MemberTLS{TLS: config.TLS(files), CAKey: filepath.Join(dir, "ca", pki.CAKeyFile)},
			BootstrapToken: "dev", Log: "warn", Sources: config.Sources{Manifests: manifests}, BalancingPolicies: true,
			BGP: config.BGP{
				ASN: groupASN, RouterID: netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)}), Port: -1,
				RestartWindow: 2 * time.Second,
			},
			Drivers: config.Drivers{Allowed: []string{"127.0.0.0/8", "::1"}}, // all that there is of a group here is on this machine
		}
		if err := c.Validate(); err != nil {
			return nil, err
		}
		sw.AddNeighbor(testswitch.Neighbor{RouterID: c.BGP.RouterID, ASN: groupASN})
		g.configs = append(g.configs, c)
	}
	return g, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// keptPorts gives the ports of an earlier run over the same folder, whose members look for each other there, or
// draws new ones and keeps them.
func keptPorts(path string, n int) ([]int, error) {
	var ports []int
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &ports)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("%s: %w; remove the folder to begin anew", path, err)
	case len(ports) != n:
		return nil, fmt.Errorf("%s is of %d members, not %d; remove the folder to begin anew, or give another", filepath.Dir(path), len(ports)/2, n/2)
	default:
		return ports, nil
	}
	for len(ports) < n {
		port, err := freeport.Draw(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ports, int(port)) {
			ports = append(ports, int(port))
		}
	}
	if data, err = json.Marshal(ports); err != nil {
		return nil, err
	}
	return ports, os.WriteFile(path, data, 0o600)
}

// issue makes a certificate below dir, and the CA first if there is none.
func issue(dir string, role pki.Role, name string) (pki.Files, error) {
	ca := filepath.Join(dir, "ca")
	if err := pki.Init(ca, pki.CAOptions{Name: "dev"}); err != nil && !errors.Is(err, pki.ErrExists) {
		return pki.Files{}, err
	}
	request := pki.Request{Role: role, Name: name}
	if role == pki.Member {
		request.Hosts = []string{"127.0.0.1"}
	}
	issued, err := pki.Issue(ca, request)
	if err != nil {
		return pki.Files{}, err
	}
	return issued.Write(filepath.Join(dir, "certs", string(role)+"-"+name))
}

// start runs a member that does not run.
func (g *group) start(ctx context.Context, name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.configOf(name)
	if err != nil {
		return err
	}
	if _, runs := g.running[name]; runs {
		return fmt.Errorf("start %s: it runs already", name)
	}
	m, err := member.Open(c, g.version, machine.Member(machine.Listeners{}), g.log)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &runningMember{Member: m, stop: cancel, done: make(chan struct{})}
	g.running[name] = r
	go func() {
		defer close(r.done)
		defer cancel()
		if err := m.Run(ctx); err != nil {
			select {
			case g.failed <- fmt.Errorf("member %s: %w", name, err):
			default:
			}
		}
	}()
	return nil
}

// kill stops a member and waits until it is gone.
func (g *group) kill(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.configOf(name); err != nil {
		return err
	}
	r, ok := g.running[name]
	if !ok {
		return fmt.Errorf("kill %s: it does not run", name)
	}
	r.stop()
	<-r.done
	delete(g.running, name)
	return nil
}

func (g *group) configOf(name string) (config.Controller, error) {
	for _, c := range g.configs {
		if c.Name == name {
			return c, nil
		}
	}
	return config.Controller{}, fmt.Errorf("no member %q; the last is %s", name, g.configs[len(g.configs)-1].Name)
}

// members lists those that run, by name.
func (g *group) members() []*member.Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*member.Member
	for _, c := range g.configs {
		if r, ok := g.running[c.Name]; ok {
			out = append(out, r.Member)
		}
	}
	return out
}

// stop ends all members.
func (g *group) stop() {
	for _, m := range g.members() {
		_ = g.kill(m.Name()) // it runs: it was just listed
	}
}

// servers are the API addresses of all members.
func (g *group) servers() []string {
	var out []string
	for _, c := range g.configs {
		out = append(out, c.Advertise.API)
	}
	return out
}

// switchName is what the group calls the built-in switch.
const switchName = "built-in-switch"

// peerManifest makes the built-in switch known to the group the way any switch is: by a manifest.
func peerManifest(dir string, sw *testswitch.Switch) (folder string, err error) {
	folder = filepath.Join(dir, "switch")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	text := fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: %s}
spec: {myASN: %d, peerASN: %d, peerAddress: %s, peerPort: %d}
`, switchName, groupASN, sw.ASN(), sw.Addr().Addr(), sw.Addr().Port())
	return folder, os.WriteFile(filepath.Join(folder, "peer.yaml"), []byte(text), 0o644)
}
