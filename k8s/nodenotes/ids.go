// SPDX-License-Identifier: Apache-2.0

package nodenotes

import (
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/balancing"
)

// IDs has each Node bear the id that the record has of it (balancing §2.3). While the record has none yet, or does
// not know the Node, what stands there stays.
func IDs(r fsm.Reader) Contributor {
	return func(seen *Seen) map[string]string {
		n, ok := fsm.Get[*fsm.Node](r.Read(), fsm.TableNodes, seen.Name)
		if !ok || n.Number == 0 || n.UID != seen.UID {
			return seen.Keep(balancing.AnnotationNodeID)
		}
		return map[string]string{balancing.AnnotationNodeID: balancing.ID(n.Number).String()}
	}
}
