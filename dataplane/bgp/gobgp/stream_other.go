// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package gobgp

// stream tells nothing: what is written counts as arrived. Members serve on Linux; elsewhere they are tried out.
func stream(int) (written, confirmed uint64, err error) { return 0, 0, nil }
