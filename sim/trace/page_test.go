// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"testing"
	"time"
)

func pageOf(t *testing.T, trace Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, trace, Page{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPageOfALongRun(t *testing.T) {
	trace := invent(5, 10, 300_000)
	trace.About.Violation = &Violation{Rule: "S1", At: 42*time.Second + 137*time.Millisecond, Sentence: "m2 and m3 differ at index 8812"}
	start := time.Now()
	page := pageOf(t, trace)
	t.Logf("%d events, %d bytes, written in %v", trace.Kept(), len(page), time.Since(start))
	b := openBrowser(t, 1280, 800)
	b.open(page, "")
	t.Logf("drawn after %s ms", b.eval("document.documentElement.dataset.drawn"))
	b.picture("huge")
	b.key("v")
	b.picture("violation")
}
