// SPDX-License-Identifier: Apache-2.0

//go:build !fairlead_sim

package program

// embedded gives the program that was built in, compressed: none.
func embedded() ([]byte, bool) { return nil, false }
