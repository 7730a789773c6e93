// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"log/slog"
)

type nodes struct{}

func newNodes(string, *group, *slog.Logger) nodes { return nodes{} }

func (nodes) run(ctx context.Context) error { <-ctx.Done(); return nil }
