// SPDX-License-Identifier: Apache-2.0

//go:build simulated && !wasip1

// Functions without a body are in the runtime.
