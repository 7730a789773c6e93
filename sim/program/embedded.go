// SPDX-License-Identifier: Apache-2.0

//go:build fairlead_sim

package program

import _ "embed"

// guest is made by Embed, which hands it to the compiler: there is no such file in the source.
//
//go:embed guest.gz
var guest []byte

// embedded gives the program that was built in, compressed.
func embedded() ([]byte, bool) { return guest, true }
