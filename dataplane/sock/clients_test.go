// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Balancing §20, §23: how full tables are that clients fill is counted once a minute, whoever asks how often; where those that are in use
// do not fit for long there is one warning, and where tables are merely full of what was used once there is none.
// Rule: balancing §20.
func TestTablesThatClientsFillAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		metrics := prometheus.NewRegistry()
		var mu sync.Mutex // of what is counted; time that passes in a bubble orders nothing
		counted, held := 0, map[string]Held{"records": {Rows: 100, Room: 100}, "flows": {Rows: 100, Room: 100, Timed: true, Recent: 79}}
		s, err := Over(Options{
			Config: Config{Node: "n1"}, Room: room, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics,
			Clients: func() (map[string]Held, error) { mu.Lock(); defer mu.Unlock(); counted++; return held, nil },
		}, newMemory())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		for range 3 {
			if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP fairlead_sock_rows Rows that a table holds.
# TYPE fairlead_sock_rows gauge
fairlead_sock_rows{table="flows"} 100
fairlead_sock_rows{table="records"} 100
# HELP fairlead_sock_rows_max Rows that a table has room for.
# TYPE fairlead_sock_rows_max gauge
fairlead_sock_rows_max{table="flows"} 100
fairlead_sock_rows_max{table="places"} 1000
fairlead_sock_rows_max{table="records"} 100
fairlead_sock_rows_max{table="slots"} 1000
# HELP fairlead_sock_rows_recent Rows of a table of clients that were used within two minutes.
# TYPE fairlead_sock_rows_recent gauge
fairlead_sock_rows_recent{table="flows"} 79
`), "fairlead_sock_rows", "fairlead_sock_rows_max", "fairlead_sock_rows_recent"); err != nil {
				t.Error(err)
			}
		}
		warnings := func(want int) {
			t.Helper()
			if got := strings.Count(log.String(), "too small"); got != want {
				t.Errorf("%d warnings, want %d: %s", got, want, log.String())
			}
		}
		warnings(0)
		for _, step := range []struct{ recent, warnings int }{{80, 1}, {90, 1}, {10, 1}, {80, 2}} {
			mu.Lock()
			held = map[string]Held{"flows": {Rows: 100, Room: 100, Timed: true, Recent: step.recent}}
			mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
			warnings(step.warnings)
		}
		if counted != 5 {
			t.Errorf("counted %d times in four minutes", counted)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
