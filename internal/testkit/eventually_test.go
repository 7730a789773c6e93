// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that notes why it failed, and goes no further.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestEventuallyWaitsForWhatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := time.Now()
		Until(t, "a second", func() bool { return time.Since(since) > time.Second })
		if d := time.Since(since); d > time.Second+2*longerPause {
			t.Errorf("seen after %v", d)
		}
	})
}

func TestEventuallySaysWhatWasLastSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, looks := &failing{TB: t}, 0
		since := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			Eventually(f, "a leader", func() error {
				looks++
				return errors.New("two candidates")
			})
		}()
		<-done
		if !strings.Contains(f.why, "a leader") || !strings.Contains(f.why, "two candidates") {
			t.Errorf("it says %q", f.why)
		}
		if d := time.Since(since); d < Patience || d > Patience+time.Second {
			t.Errorf("it gave up after %v", d)
		}
		if looks > int(Patience/longerPause)+10 {
			t.Errorf("it looked %d times", looks)
		}
	})
}
