// SPDX-License-Identifier: Apache-2.0

//go:build !race

package testkit

// RaceDetector tells whether the race detector looks on.
const RaceDetector = false
