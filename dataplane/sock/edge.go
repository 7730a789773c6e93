// SPDX-License-Identifier: Apache-2.0

package sock

// Edge is the programs and tables in the kernel.
type Edge interface {
	// Read gives all rows that the tables hold.
	Read() (Rows, error)
	// Apply carries a change out in the order of its fields. After an error part of it may be there.
	Apply(Change) error
	// Attach has the programs of this release work with the tables. It may be repeated.
	Attach() error
	// Counters tells how often calls ended how since the tables were made, by kind and outcome.
	Counters() (map[Kind]map[string]uint64, error)
}
