// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// Page says how a trace is shown.
type Page struct {
	// Entry says in words what a log entry asks for; EntryText when nil. It is asked once for each distinct entry.
	Entry func(entry []byte) string
}

//go:embed page
var pageFiles embed.FS

// WriteHTML writes one page that needs nothing else, neither network nor files: the trace itself, packed as in a trace
// file, and the code that reads and draws it. Contents of Kubernetes Secrets are left out.
func WriteHTML(w io.Writer, t Trace, o Page) error {
	if o.Entry == nil {
		o.Entry = EntryText
	}
	var packed bytes.Buffer
	c, err := t.write(&packed, withoutSecrets)
	if err != nil {
		return err
	}
	texts, err := zipped(entryTexts(t, c, o.Entry))
	if err != nil {
		return err
	}
	page, err := template.New("page.html").ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	imports, err := importMap()
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	err = page.Execute(w, map[string]any{
		"About":   t.About,
		"Digest":  t.Digest,
		"Heard":   t.Heard,
		"Missing": t.Missing(),
		"Until":   shortTime(t.About.Until),
		"Style":   template.CSS(style), // our own
		"Imports": imports,
		"Trace":   template.HTML(base64.StdEncoding.EncodeToString(packed.Bytes())), // base64
		"Texts":   template.HTML(base64.StdEncoding.EncodeToString(texts)),          // base64
		"Broken":  brokenAt(t.About.Violation),
	})
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// importMap carries the modules of the page as data, so that they need no files beside it. They import each other by
// their names there, without the ending.
func importMap() (template.HTML, error) {
	imports := map[string]string{}
	paths, err := fs.Glob(pageFiles, "page/*.js")
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		script, err := pageFiles.ReadFile(path)
		if err != nil {
			return "", err
		}
		imports[strings.TrimSuffix(path, ".js")] = "data:text/javascript;base64," + base64.StdEncoding.EncodeToString(script)
	}
	text, err := json.Marshal(map[string]any{"imports": imports})
	return template.HTML(`<script type="importmap">` + string(text) + `</script>`), err // base64 of our own files
}

// entryTexts says what the entries mean, by the number that each has among the texts of the file.
func entryTexts(t Trace, c *coder, say func([]byte) string) map[string]string {
	texts := map[string]string{}
	for e := range t.Events() {
		applied, ok := e.Event.(event.Applied)
		if !ok || len(applied.Entry) == 0 {
			continue
		}
		number := fmt.Sprint(c.refs[string(applied.Entry)])
		if _, done := texts[number]; !done {
			texts[number] = say(applied.Entry)
		}
	}
	return texts
}

func zipped(v any) ([]byte, error) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if err := json.NewEncoder(zip).Encode(v); err != nil {
		return nil, fmt.Errorf("write page: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("write page: %w", err)
	}
	return b.Bytes(), nil
}

// withoutSecrets takes out what a Secret of Kubernetes holds: pages are sent around.
func withoutSecrets(e event.Stamped) event.Stamped {
	if o, ok := e.Event.(event.Object); ok && o.Kind == "Secret" {
		o.Fields, o.JSON = "(left out)", nil
		e.Event = o
	}
	return e
}

func shortTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%g s", d.Round(time.Millisecond).Seconds())
}

func brokenAt(v *Violation) string {
	if v == nil {
		return ""
	}
	return Clock(v.At)
}
