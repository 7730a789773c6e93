// SPDX-License-Identifier: Apache-2.0

package desired

import "time"

// Heartbeat is the time between two heartbeats of an agent to one member, where nothing else is configured. Members judge silence by it: both
// have to have the same.
const Heartbeat = 200 * time.Millisecond
