// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package steer

import "errors"

func openEdge(Options) (Edge, error) {
	return nil, errors.New("steer: service addresses are steered on Linux only")
}
