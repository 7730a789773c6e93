// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/hashicorp/raft"

// NotFound tells whether a raft.StableStore says that it has no such key. The library compares this very text, and
// so must every store.
func NotFound(err error) bool { return err != nil && err.Error() == "not found" }

// guardedStable is a raft.StableStore whose failures end the member: a term or a vote that was not kept could be
// given twice.
type guardedStable struct {
	view
	inner raft.StableStore
}

func (g *guardedStable) Set(key, value []byte) error {
	return g.write("write "+string(key), g.inner.Set(key, value))
}

func (g *guardedStable) SetUint64(key []byte, value uint64) error {
	return g.write("write "+string(key), g.inner.SetUint64(key, value))
}

func (g *guardedStable) Get(key []byte) ([]byte, error) {
	value, err := g.inner.Get(key)
	if NotFound(err) {
		return nil, err
	}
	return value, g.read("read "+string(key), err)
}

func (g *guardedStable) GetUint64(key []byte) (uint64, error) {
	value, err := g.inner.GetUint64(key)
	if NotFound(err) {
		return 0, err
	}
	return value, g.read("read "+string(key), err)
}
