// SPDX-License-Identifier: Apache-2.0

// Package safeyaml reads YAML that somebody else wrote: manifests, annotations, configuration files. It is the only place in the program
// that decodes YAML (hack/layers).
//
// Aliases let a short text stand for a long one: half a megabyte of them was read as five gigabytes. So what they add is counted before
// anything is decoded, along with how deep the text is nested, and refused beyond bounds that go with the length of the text. Start
// reading at Budget.
package safeyaml
