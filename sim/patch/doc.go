// SPDX-License-Identifier: Apache-2.0

// Package patch changes source files for one build of them, by lines that must be there: planted bugs, the older
// release, and what Go's runtime has to know of worlds. A change that no longer fits is an error, never a guess.
//
// Start reading at Patch.
package patch
