// SPDX-License-Identifier: Apache-2.0

// Package takeover takes over what LBCF left in a cluster: it reads LBCF's objects, tells what will become of each once
// Fairlead acts on them, and prepares the cluster for that.
//
// It knows how LBCF stores its objects (lbcf §2) and which of them are adopted without a call (§13). Judge is
// pure, and says of every BackendRecord what comes of it: that no registered, unchanged backend is registered anew or
// dropped is its promise as far as objects tell. What it does not judge is in the answers of drivers. Changes of the
// cluster are in Cluster's other methods; each may be repeated. Start reading at Installation, then Judge.
package takeover
