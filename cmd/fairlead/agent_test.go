// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pod whose node is clean stays until it is told to stop, and ends well.
func TestIdleEndsWhenItIsToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		began := time.Now()
		var out, errs bytes.Buffer
		if code := run(ctx, []string{"agent", "idle"}, strings.NewReader(""), &out, &errs); code != exitDone || time.Since(began) != time.Hour || out.Len()+errs.Len() > 0 {
			t.Errorf("after %s exit %d: %s%s", time.Since(began), code, out.String(), errs.String())
		}
	})
}
