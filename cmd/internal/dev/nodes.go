// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
)

// nodes runs an agent without a kernel for every node that the group knows. Each speaks to the members as an agent
// on a machine of its own would, with a certificate of its own.
type nodes struct {
	dir   string
	group *group
	log   *slog.Logger
}

func newNodes(dir string, g *group, log *slog.Logger) *nodes {
	return &nodes{dir: dir, group: g, log: log}
}

// lookEvery is how often the record is looked at for new nodes.
const lookEvery = 100 * time.Millisecond

// run starts agents as nodes appear and ends those of nodes that went, until ctx ends.
func (n *nodes) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ends := map[fsm.NodeID]context.CancelFunc{}
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		known := n.known()
		for id := range known {
			if _, runs := ends[id]; runs {
				continue
			}
			ctx, end := context.WithCancel(ctx)
			ends[id] = end
			running.Go(func() {
				if err := n.agent(ctx, string(id)); err != nil && ctx.Err() == nil {
					n.log.Error("agent ended", "node", id, "err", err)
				}
			})
		}
		for id, end := range ends {
			if !known[id] {
				end()
				delete(ends, id)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// known are the nodes that any running member has heard of.
func (n *nodes) known() map[fsm.NodeID]bool {
	out := map[fsm.NodeID]bool{}
	for _, m := range n.group.members() {
		for _, known := range fsm.List[*fsm.Node](m.Record().Read(), fsm.TableNodes) {
			out[known.ID] = true
		}
	}
	return out
}

func (n *nodes) agent(ctx context.Context, name string) error {
	files, err := issue(n.dir, pki.Agent, name)
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	err = node.Run(ctx, node.Options{
		Node: name, Boot: "dev-" + name, Servers: n.group.servers(), Files: files,
		State: filepath.Join(n.dir, "nodes", name), Applier: &agent.Recorder{}, Log: n.log,
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
