// SPDX-License-Identifier: Apache-2.0

package nodenotes

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/keep"
)

// API is what this package asks of an API server.
type API interface {
	// Write has a Node's annotations that are ours be those of w, and gives what the Node is like then.
	Write(ctx context.Context, w *Write) (*Seen, error)
}

// Kubernetes is an API server. Its account needs "patch" on nodes.
type Kubernetes struct{ Nodes client.Nodes }

// Write applies annotations as those of Manager (server-side apply): the API server takes away what Manager owned and w lacks, leaves
// alone what others own, and refuses if the Node is no longer as w was decided on.
func (k Kubernetes) Write(ctx context.Context, w *Write) (*Seen, error) {
	body := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{
		"name": w.Name, "uid": w.UID, "resourceVersion": w.ResourceVersion, "annotations": w.Annotations,
	}}
	got, err := k.Nodes.Apply(ctx, w.Name, body, metav1.ApplyOptions{FieldManager: Manager, Force: true})
	if err != nil {
		return nil, err
	}
	return SeenOf(got), nil
}

// Config is everything a Writer is made of. Fields without "optional" are required.
type Config struct {
	Record fsm.Reader
	API    API
	// By are in order of what counts where two name one annotation.
	By []Contributor
	// Tables are those of the record that Contributors look at, beside TableNodes. Optional.
	Tables []fsm.Table
	// Ours tells whether the Nodes are those of the cluster that the record is of. Optional.
	Ours  func() bool
	Clock keep.Clock
	Log   *slog.Logger
	// Spacing is the least time between two looks at the record. Optional, 200 ms.
	Spacing time.Duration
	// Metrics is optional.
	Metrics prometheus.Registerer
}

// Writer keeps annotations of Nodes as they shall be. It is shown Nodes all the time (Show), and writes while it runs.
type Writer struct {
	c      Config
	nodes  *keep.Store[string, *Seen]
	keeper *keep.Keeper[string, *Seen, Write]
}

// New makes a Writer that does nothing yet. It fails on a missing field and on metrics that are registered already.
func New(c Config) (*Writer, error) {
	if c.Record == nil || c.API == nil || c.Clock == nil || c.Log == nil {
		return nil, fmt.Errorf("nodenotes: config lacks Record, API, Clock or Log")
	}
	if c.Spacing == 0 {
		c.Spacing = 200 * time.Millisecond
	}
	w := &Writer{c: c, nodes: keep.NewStore[string, *Seen]()}
	written := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_node_annotations_writes_total", Help: "Writes of the annotations of Nodes, by how they ended.",
	}, []string{"result"})
	if c.Metrics != nil {
		if err := c.Metrics.Register(written); err != nil {
			return nil, fmt.Errorf("nodenotes: register metrics: %w", err)
		}
	}
	var err error
	w.keeper, err = keep.New(keep.Config[string, *Seen, Write]{
		What: "annotations of Nodes", Allow: "let the account patch nodes, as deploy/components/balancing does",
		Store: w.nodes, Desk: desk{w}, Clock: c.Clock, Log: c.Log, Ours: c.Ours, Writes: written,
	})
	return w, err
}

// Show takes in a Node that was listed, added or changed, as a source shows it, or that it is gone. Objects of other kinds are not looked
// at.
func (w *Writer) Show(kind world.Kind, name string, o any) {
	if kind != world.KindNode {
		return
	}
	if shown, ok := o.(*corev1.Node); ok {
		w.nodes.Set(name, SeenOf(shown))
	} else {
		w.nodes.Delete(name)
	}
}

// Run writes for one term, until ctx ends, and returns once everything that it started has ended.
func (w *Writer) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.follow(ctx)
	}()
	w.keeper.Run(ctx)
	<-done
}

// follow has Nodes looked at whenever the record changes in a way that may matter.
func (w *Writer) follow(ctx context.Context) {
	for ctx.Err() == nil {
		v := w.c.Record.Read()
		w.keeper.NoticeAll()
		if w.c.Record.Wait(ctx, v, append([]fsm.Table{fsm.TableNodes}, w.c.Tables...)...) != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-w.c.Clock.After(w.c.Spacing):
		}
	}
}

type desk struct{ *Writer }

// Look is keep.Desk's.
func (d desk) Look(_ string, seen *Seen, _ time.Time) (*Write, time.Duration) {
	return Plan(seen, d.c.By), 0
}

// Digest is keep.Desk's.
func (d desk) Digest(w *Write) uint64 { return w.digest() }

// Write is keep.Desk's.
func (d desk) Write(ctx context.Context, _ string, w *Write) (*Seen, error) {
	return d.c.API.Write(ctx, w)
}
