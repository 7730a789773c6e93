// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"
	"unicode/utf8"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// A driver's host may be any bytes; how a call to it ended is a text all the same, which the record takes.
func TestErrorOfAHostThatIsNoText(t *testing.T) {
	for _, url := range []string{"http://%ff/hook", "https://%ff%fe.example/hook", "http://driver.%ff.svc:8080/"} {
		tr, err := driver.NewTransport(driver.TransportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		c, err := driver.New(driver.Options{
			Name: "ns/drv", URL: url, HTTP: tr, Now: func() time.Duration { return time.Since(begin) }, Random: rand.NewPCG(1, 2), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			continue // refused before it can be called
		}
		_, err = c.EnsureBackend(context.Background(), driver.Call{}, webhook.BackendRequest{})
		if err == nil || !utf8.ValidString(err.Error()) {
			t.Fatalf("%s: %q", url, err)
		}
		if _, err := fsm.Fit(fsm.Proposal{Command: &fsm.FinishOperation{Subject: "s", Result: fsm.ResultFailed, Message: err.Error()}}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
