// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestConnectionsAreThoseThatTheKernelCounts(t *testing.T) {
	t.Parallel()
	got, err := readConns(`Ip: Forwarding DefaultTTL
Ip: 2 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs
Tcp: 1 200 120000 -1 7 1205 2 3 4 5
Udp: InDatagrams
Udp: 9
`)
	if want := (conns{accepted: 1205, open: 4}); err != nil || got != want {
		t.Errorf("connections %+v, %v; want %+v", got, err, want)
	}
	text, err := os.ReadFile("/proc/self/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readConns(string(text)); err != nil {
		t.Error(err)
	}
	if _, err := readConns("Tcp: ActiveOpens\nTcp: 1\n"); err == nil {
		t.Error("no error without the counts")
	}
}

func TestPodIsIdleOnceManyRequestsPassedItBy(t *testing.T) {
	t.Parallel()
	var s silence
	for i, c := range []struct {
		accepted, open int
		ended          int64
		idle           bool
	}{
		{0, 0, 499, false},
		{7, 1, 600, false},
		{7, 1, 9000, false}, // one that lasts
		{7, 0, 9001, false},
		{7, 0, 9500, false},
		{8, 0, 9501, false}, // another came and went
		{8, 0, 10000, false},
		{8, 0, 10001, true},
	} {
		if err := s.look(conns{c.accepted, c.open}, c.ended); (err == nil) != c.idle {
			t.Errorf("look %d: %v, want idle %t", i, err, c.idle)
		}
	}
}

// A while of two seconds in which nothing else keeps the machine busy has 4,000 requests of twenty clients.
func TestAWhileIsNotOverBeforePatientClientsGotAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		patient bool
		want    time.Duration
	}{
		{"patient", true, 40 * time.Second}, // 1,000 requests at 25 a second
		{"by the clock", false, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{o: Options{Patient: c.patient}}
				w.ended.Store(17)
				var clients sync.WaitGroup
				defer clients.Wait()
				clients.Go(func() {
					for range 1000 {
						time.Sleep(40 * time.Millisecond)
						w.ended.Add(1)
					}
				})
				begin := time.Now()
				if err := w.during(t.Context(), 2*time.Second); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took < c.want || took > c.want+time.Second {
					t.Errorf("it took %s, want %s", took, c.want)
				}
			})
		})
	}
}
