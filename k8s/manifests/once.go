// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/alike"
	"fairlead.io/fairlead/k8s/convert"
)

// Once gives what reads files by their names, as a folder would be read that holds just them, and takes them at their word: nothing is
// waited for. A file that cannot be read is among the problems; the World is complete if there is none. Review and namespaces are those
// of Options.
func Once(review convert.Review, namespaces convert.Namespaces) func(files map[string][]byte) world.World {
	return func(files map[string][]byte) world.World { return once(files, rules{review, namespaces}) }
}

func once(files map[string][]byte, by rules) world.World {
	f := newFolder(nil, "", by)
	f.listed, f.complete, f.lists = true, true, 1
	var like alike.Table
	for name, data := range files {
		known := &file{name: name, newest: decode(name, data, &like, by), decided: true}
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
	return f.view
}
