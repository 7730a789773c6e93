// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"net/http"
)

// page makes one answer at a time, whole, before it sends any of it: gathering metrics takes memory and time, which those who
// read slowly, or many at once, would have it take many times over.
type page struct {
	pages http.Handler
	turn  chan struct{} // of capacity 1: taken while an answer is made, not while it is sent
}

func newPage(pages http.Handler) *page { return &page{pages, make(chan struct{}, 1)} }

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	whole := &draft{header: w.Header(), code: http.StatusOK}
	p.render(whole, r)
	w.WriteHeader(whole.code)
	_, _ = w.Write(whole.body.Bytes()) // who asked is gone
}

func (p *page) render(into *draft, r *http.Request) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		p.pages.ServeHTTP(into, r)
	case <-r.Context().Done(): // who gave up waiting is owed nothing
		into.code = http.StatusServiceUnavailable
	}
}

// draft is an answer that is not sent yet.
type draft struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (d *draft) Header() http.Header         { return d.header }
func (d *draft) WriteHeader(code int)        { d.code = code }
func (d *draft) Write(p []byte) (int, error) { return d.body.Write(p) }
