// SPDX-License-Identifier: Apache-2.0

// Package trace remembers what happened in a run: always as a digest, on demand event by event.
//
// It knows every kind of event and all of its fields (fields.go is the one place that lists them: the digest, the
// bytes of a trace, the text and the page are all made from it). It promises that equal runs have equal digests and
// that any difference, in any field of any event, gives another one; that a trace reads back as it was written; and
// that what did not fit is counted, not hidden. It judges nothing. Start reading at Recorder, then Trace.
package trace
