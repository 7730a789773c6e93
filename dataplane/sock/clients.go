// SPDX-License-Identifier: Apache-2.0

package sock

import "time"

// Held is what a table holds that clients fill. Such tables make room by forgetting who was longest not seen, so one that is full may
// hold little that anybody uses.
type Held struct {
	Rows   int
	Room   int
	Timed  bool           // its rows tell when they were used last
	Recent int            // rows that were used within RecentUse, if it is timed
	Rules  map[uint32]int // rows of each rule, where rows are sockets
}

// RecentUse is how long ago a row was used at most that counts as used: as long as a choice for datagrams is kept.
const RecentUse = 2 * time.Minute

// countEvery is how often tables that clients fill are counted. A table of 262,144 rows takes about 80 ms, in calls of 1024 rows.
const countEvery = time.Minute

// countClients has metrics tell how full tables are that clients fill, and warns once of those whose clients are forgotten too early.
func (s *Sock) countClients() {
	if s.clients == nil {
		return
	}
	tables, err := s.clients()
	if err != nil {
		s.metrics.failures.Inc()
		s.log.Warn("clients not counted", "err", err)
	}
	for table, h := range tables {
		s.metrics.rows.WithLabelValues(table).Set(float64(h.Rows))
		s.metrics.room.WithLabelValues(table).Set(float64(h.Room))
		if h.Rules != nil {
			s.metrics.backends.sockets.Store(&h.Rules)
		}
		if !h.Timed {
			continue
		}
		s.metrics.recent.WithLabelValues(table).Set(float64(h.Recent))
		full := h.Recent*100 >= h.Room*scarce
		if full && !s.crowded[table] {
			s.log.Warn("table of clients is about to be too small: those that are not seen for longest are forgotten", "table", table, "recent", h.Recent, "room", h.Room, "remedy", "raise sock."+table+" in agent.yaml")
		}
		s.crowded[table] = full
	}
}
