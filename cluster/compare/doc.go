// SPDX-License-Identifier: Apache-2.0

// Package compare finds out whose copy of the record is a wrong one (S1): by mixed builds, by a fault of memory, by a bug.
//
// Each member judges itself alone, and by the word of most: it ends where a majority of the voters has one digest at an index, and it has another one.
// Without such a majority nobody is judged, and that is said. Begin reading at judge; Comparer asks the others, and has records hashed again.
package compare
