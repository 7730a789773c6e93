// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package gobgp

// md5Works says whether the kernel signs TCP segments (RFC 2385), as GoBGP asks it to on Linux only.
func md5Works() bool { return false }
