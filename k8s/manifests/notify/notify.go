// SPDX-License-Identifier: Apache-2.0

// Package notify turns the kernel's file events into edges for package manifests. It promises hints only: edges are
// coalesced, and where the kernel says nothing (network file systems, too many folders) polling finds the change.
package notify

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Watch gives a channel that holds a token after something in dir or its subfolders changed, until ctx ends.
func Watch(ctx context.Context, dir string, log *slog.Logger) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	if err := w.Add(dir); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	addFolders(w, dir, log)
	edges := make(chan struct{}, 1)
	go forward(ctx, w, edges, log)
	return edges, nil
}

func forward(ctx context.Context, w *fsnotify.Watcher, edges chan<- struct{}, log *slog.Logger) {
	defer w.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.Events:
			if !ok {
				return
			}
			if event.Has(fsnotify.Create) {
				addFolders(w, event.Name, log)
			}
		case err, ok := <-w.Errors: // an overflow, for example: something changed
			if !ok {
				return
			}
			log.Debug("file events lost", "error", err)
		}
		select {
		case edges <- struct{}{}:
		default:
		}
	}
}

// addFolders watches the folders from root down. What cannot be watched is left to polling.
func addFolders(w *fsnotify.Watcher, root string, log *slog.Logger) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		return w.Add(path)
	})
	if err != nil {
		log.Debug("folder not watched, polling it", "dir", root, "error", err)
	}
}
