// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"maps"
	"slices"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/k8s/alike"
	"fairlead.io/fairlead/k8s/convert"
)

// Once gives what reads files by their names, as a folder would be read that holds just them, and takes them at their word: nothing is
// waited for. A file that cannot be read is among the problems; the World is complete if there is none. Review and namespaces are those
// of Options.
//
// Aliases of all files share a budget, so that what one call of it may spend goes with how long the files are. It returns ctx's error once ctx
// has ended.
func Once(review convert.Review, namespaces convert.Namespaces) func(ctx context.Context, files map[string][]byte) (world.World, error) {
	return func(ctx context.Context, files map[string][]byte) (world.World, error) {
		return once(ctx, files, rules{review: review, namespaces: namespaces})
	}
}

func once(ctx context.Context, files map[string][]byte, by rules) (world.World, error) {
	bytes := 0
	for _, data := range files {
		bytes += len(data)
	}
	budget := safeyaml.NewBudget(bytes)
	f := newFolder(nil, "", by)
	f.listed, f.complete, f.lists = true, true, 1
	var like alike.Table
	for _, name := range slices.Sorted(maps.Keys(files)) { // so that it is the same file on every call whose aliases are too many
		if err := ctx.Err(); err != nil {
			return world.World{}, err
		}
		known := &file{name: name, newest: decodeWithin(budget, name, files[name], &like, by), decided: true}
		if known.newest.blank() {
			continue // at its word it holds nothing
		}
		known.judge()
		f.files[name] = known
		f.complete = f.complete && known.hasGood
	}
	f.order = sortedNames(f.files)
	f.merged.update(f.files, f.order, false)
	f.publish(true)
	return f.view, nil
}
