// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
)

// kernel is all parts together, each by its name.
type kernel struct {
	names []string
	parts []Part
	// tunnel is one of the parts; nil for none.
	tunnel Tunnelling
	// found lists the addresses that an earlier agent left; nil for none.
	found  func(ctx context.Context) ([]desired.Address, error)
	closes []func()
	probes agent.Probes // nil: nothing is probed
}

// tellCosts tells of what a choice costs that nobody may have made: kube-proxy is the default.
func tellCosts(c config.Agent, log *slog.Logger) {
	if c.Steer && c.NAT == config.NATKubeProxy {
		log.Info("kube-proxy translates service addresses here: while a node dies, it sends connections there until Kubernetes takes the node's endpoints away",
			"remedy", "nat: nftables in agent.yaml leaves them out once the group takes the node for down; see docs/nat.md")
	}
}

// openKernel makes the parts that the configuration asks for. Nothing is changed before the first Apply.
func openKernel(c config.Agent, e Edges, log *slog.Logger, metrics prometheus.Registerer) (*kernel, error) {
	k := &kernel{}
	if c.Steer {
		s, err := e.Steer(c, log, metrics)
		if err != nil {
			return nil, err
		}
		k.add("steer", s)
		k.found, k.closes = s.Found, append(k.closes, s.Close)
	}
	if c.NAT == config.NATNftables {
		n, err := e.NAT(c, log, metrics)
		if err != nil {
			k.close()
			return nil, err
		}
		k.add("nat", n)
	}
	if e.Probing != nil && (c.NAT == config.NATNftables || c.Sock != nil) {
		p, err := e.Probing(c, log, metrics)
		if err != nil {
			k.close()
			return nil, err
		}
		k.add("probes", p)
		k.probes = p
	}
	if c.Sock != nil {
		if err := k.openSock(c, e, log, metrics); err != nil {
			k.close()
			return nil, err
		}
	}
	if c.Tunnel != nil {
		if err := k.openTunnel(c, e, log, metrics); err != nil {
			k.close()
			return nil, err
		}
	}
	return k, nil
}

func (k *kernel) openTunnel(c config.Agent, e Edges, log *slog.Logger, metrics prometheus.Registerer) error {
	if e.Tunnel == nil {
		return errors.New("tunnel: this build of the agent makes no tunnels")
	}
	t, err := e.Tunnel(c, log, metrics)
	if err != nil {
		return fmt.Errorf("tunnel: %w", err)
	}
	k.add("tunnel", t)
	k.tunnel = t
	k.closes = append(k.closes, t.Close)
	return nil
}

func (k *kernel) openSock(c config.Agent, e Edges, log *slog.Logger, metrics prometheus.Registerer) error {
	if e.Sock == nil {
		return errors.New("sock: this build of the agent has no programs for sockets")
	}
	s, err := e.Sock(c, log, metrics)
	if err != nil {
		return fmt.Errorf("sock: %w", err)
	}
	k.add("sock", s)
	k.closes = append(k.closes, s.Close)
	return nil
}

func (k *kernel) add(name string, p Part) {
	k.names, k.parts = append(k.names, name), append(k.parts, p)
}

// Apply implements agent.Applier. Every part is brought to the state, also when another one fails: each is of use
// alone. The ways to other hosts are there before sockets are led by them, and go after: tunnel comes last, and is prepared first.
func (k *kernel) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	if k.tunnel != nil {
		k.tunnel.Prepare(ctx, want)
	}
	var all []agent.Failure
	var errs []error
	for i, p := range k.parts {
		failed, err := p.Apply(ctx, want)
		errs = append(errs, err)
		for _, f := range failed {
			all = append(all, agent.Failure{Prefix: f.Prefix, Why: k.names[i] + ": " + f.Why})
		}
	}
	if err := inOneLine(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// inOneLine is errors.Join for people: what it makes has one line.
func inOneLine(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return &partsError{text: strings.Join(texts, "; "), errs: errs}
}

// partsError is what several parts had to say, in one line.
type partsError struct {
	text string
	errs []error
}

func (e *partsError) Error() string   { return e.text }
func (e *partsError) Unwrap() []error { return e.errs }

// run repairs what others change until ctx ends or a part fails.
func (k *kernel) run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { <-running.Done(); return nil })
	for i, p := range k.parts {
		group.Go(func() error {
			err := p.Run(running)
			if running.Err() != nil {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("%s: %w", k.names[i], errStopped)
			}
			return err
		})
	}
	return group.Wait()
}

// close ends the use of the kernel; what is there stays.
func (k *kernel) close() {
	for _, end := range slices.Backward(k.closes) {
		end()
	}
}

// cleanKernel removes what the agent made, whatever the configuration says now: it may have said something else once.
func cleanKernel(ctx context.Context, c config.Agent, e Edges, log *slog.Logger) error {
	steering, translation := e.CleanSteer(ctx, c, log), e.CleanNAT(ctx, c)
	if translation != nil {
		translation = fmt.Errorf("nat: %w", translation)
	}
	var resolution error
	if e.CleanSock != nil {
		if resolution = e.CleanSock(c); resolution != nil {
			resolution = fmt.Errorf("sock: %w", resolution)
		}
	}
	var tunnels error
	if e.CleanTunnel != nil {
		if tunnels = e.CleanTunnel(ctx, c); tunnels != nil {
			tunnels = fmt.Errorf("tunnel: %w", tunnels)
		}
	}
	return inOneLine(steering, translation, resolution, tunnels)
}
