// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
)

// Seeded is an object as etcd keeps it.
type Seeded struct {
	Key    string // below /registry/, such as services/specs/default/web
	Object runtime.Object
}

// Seed writes groups of objects to etcd without asking the API server, who then shows them as any. It is for very many: to
// allocate the n-th cluster address costs the API server a look at all n. Objects have to be whole: kind, apiVersion, UID,
// time of creation and every default; nothing is validated. Those of a group get one version, so that they have to be of
// different kinds: who watches a kind takes a version for one object.
func (c *Cluster) Seed(ctx context.Context, groups [][]Seeded) error {
	const writers = 8
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(groups) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := c.seed(ctx, groups[i]); err != nil {
					cancel(fmt.Errorf("seed %s: %w", groups[i][0].Key, err))
				}
			}
		})
	}
	writing.Wait()
	return context.Cause(ctx)
}

// seed writes one group.
func (c *Cluster) seed(ctx context.Context, group []Seeded) error {
	var txn struct {
		Success []map[string]map[string][]byte `json:"success"`
	}
	for _, o := range group {
		value, err := json.Marshal(o.Object)
		if err != nil {
			return err
		}
		txn.Success = append(txn.Success, map[string]map[string][]byte{"requestPut": {"key": []byte("/registry/" + o.Key), "value": value}})
	}
	body, err := json.Marshal(txn)
	if err != nil {
		return err
	}
	return c.transact(ctx, body)
}

// transact hands etcd's JSON gateway a transaction.
func (c *Cluster) transact(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", answer.Status, text)
	}
	return nil
}
