// SPDX-License-Identifier: Apache-2.0

//go:build fairlead_sim

package program

import _ "embed"

// guest is made by `make build-release` before it builds with the tag fairlead_sim.
//
//go:embed guest.wasm
var guest []byte

// embedded gives the program that was built in.
func embedded() ([]byte, bool) { return guest, true }
