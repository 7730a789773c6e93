// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/internal/freeport"
)

// readyWithin is how long a part may take to start, on a machine that does much besides.
const readyWithin = 4 * time.Minute

// Cluster is one control plane that runs.
type Cluster struct {
	options  Options
	binaries string
	dir      string
	ownDir   bool
	ca       *authority
	admin    *rest.Config
	client   *kubernetes.Clientset
	etcdURL  string
	etcdPeer string

	ctx    context.Context // ends with Close; what renews leases
	cancel context.CancelFunc
	beats  sync.WaitGroup

	mu                                  sync.Mutex // of the processes
	etcd, apiServer, controllers, proxy *process
	kubeconfigs                         int
}

// New starts a cluster and returns when it answers and holds what every cluster holds. Close must be called, also
// to remove the folder; processes end with this one in any case.
func New(ctx context.Context, o Options) (_ *Cluster, err error) {
	o = o.withDefaults()
	binaries, err := Binaries(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	if !o.NoControllers {
		if err := complete(binaries, controllerManager); err != nil {
			return nil, fmt.Errorf("%w (setup-envtest brings none): add it, or unset %s", err, AssetsVariable)
		}
	}
	c := &Cluster{options: o, binaries: binaries, dir: o.Dir}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if err := c.prepare(); err != nil {
		return nil, fmt.Errorf("prepare a cluster: %w", err)
	}
	if err := c.startEtcd(); err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	if o.NoControllers {
		return c, nil
	}
	return c, c.startControllers(ctx)
}

// prepare draws ports and writes certificates, keys and the administrator's kubeconfig.
func (c *Cluster) prepare() (err error) {
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "kubetest-"); err != nil {
			return err
		}
		c.ownDir = true
	} else if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := c.drawPorts(); err != nil {
		return err
	}
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	service, err := firstAddress(c.options.ServiceCIDR)
	if err != nil {
		return err
	}
	serving, err := c.ca.serving(c.options.Bind, netip.MustParseAddr("127.0.0.1"), service)
	if err != nil {
		return err
	}
	accounts, err := newKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.crt": c.ca.pem, "serving.crt": serving.cert, "serving.key": serving.key, "accounts.key": accounts}
	if err := writeFiles(c.dir, files); err != nil {
		return err
	}
	if c.admin, err = c.ConfigFor("admin", "system:masters"); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return err
	}
	return c.writeKubeconfig(c.Kubeconfig(), c.admin)
}

// drawPorts finds free ports.
func (c *Cluster) drawPorts() error {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var client, peer uint16
	for _, p := range []*uint16{&client, &peer} {
		port, err := freeport.Draw(loopback)
		if err != nil {
			return err
		}
		*p = port
	}
	if c.options.Port == 0 {
		port, err := freeport.Draw(c.options.Bind)
		if err != nil {
			return err
		}
		c.options.Port = port
	}
	c.etcdURL = "http://" + netip.AddrPortFrom(loopback, client).String()
	c.etcdPeer = "http://" + netip.AddrPortFrom(loopback, peer).String()
	return nil
}

// firstAddress is the address of the Service "kubernetes", the first of the first range.
func firstAddress(cidr string) (netip.Addr, error) {
	first, _, _ := strings.Cut(cidr, ",")
	p, err := netip.ParsePrefix(first)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("service range: %w", err)
	}
	return p.Masked().Addr().Next(), nil
}

// Endpoint is where the API server listens.
func (c *Cluster) Endpoint() netip.AddrPort {
	return netip.AddrPortFrom(c.options.Bind, c.options.Port)
}

// Client calls the API as its administrator.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dir holds data, certificates and the parts' logs.
func (c *Cluster) Dir() string { return c.dir }

// Processes gives the process ids of what runs, by name.
func (c *Cluster) Processes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[string]int{}
	for _, p := range []*process{c.etcd, c.apiServer, c.controllers, c.proxy} {
		if p != nil && !p.ended() {
			pids[p.name] = p.cmd.Process.Pid
		}
	}
	return pids
}

// Stop ends the API server as an upgrade does; etcd keeps its data, controllers retry. Start starts it again.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.stop(15 * time.Second)
}

// Kill ends the API server at once (SIGKILL).
func (c *Cluster) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.kill()
}

// Close ends everything, and removes the folder if New made it.
func (c *Cluster) Close() error {
	c.cancel()
	c.beats.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	// Nothing of it is wanted any more, so nobody is asked to end in good order.
	for _, p := range []*process{c.proxy, c.controllers, c.apiServer, c.etcd} {
		p.kill()
	}
	if !c.ownDir {
		return nil
	}
	return os.RemoveAll(c.dir)
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// wait polls a condition until it holds, the process ends or the time is over.
func (p *process) wait(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("start %s: it ended: %s", p.name, p.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w", p.name, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *Cluster) launch(name string, args ...string) (*process, error) {
	return launch(c.file(name+".log"), filepath.Join(c.binaries, name), args...)
}

func portText(port uint16) string { return strconv.Itoa(int(port)) }
