// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// Bounds of a page: on what it costs to ask, and on what it costs to make.
const (
	defaultLimit = 500
	maxLimit     = 1000
	maxPageBytes = 2 << 20
	// A filter that matches little looks at so many rows in vain, then the page ends.
	maxScanned = 20_000
)

func limitOf(asked uint32) int {
	if asked == 0 {
		return defaultLimit
	}
	return int(min(asked, maxLimit))
}

// after leaves out the rows up to and including a name. Rows are in order of their names.
func after(rows []fsm.Record, name string) []fsm.Record {
	if name == "" {
		return rows
	}
	i, found := slices.BinarySearchFunc(rows, name, func(row fsm.Record, name string) int {
		return bytes.Compare([]byte(row.Key()), []byte(name))
	})
	if found {
		i++
	}
	return rows[i:]
}

// page collects documents of one kind.
type page struct {
	filter map[string]string
	limit  int

	documents []string
	more      bool
	next      string // name of the last row that was looked at, if there are more
}

func (p *page) fill(ctx context.Context, rows []fsm.Record, k kind, r *renderer) error {
	size := 0
	for i, row := range rows {
		if len(p.documents) == p.limit || size >= maxPageBytes || i == maxScanned {
			p.more = true
			return nil
		}
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p.next = row.Key()
		d, err := document(k.render(r, row))
		if err != nil {
			return err
		}
		if matches, err := match(d, p.filter); err != nil || !matches {
			if err != nil {
				return err
			}
			continue
		}
		p.documents, size = append(p.documents, d), size+len(d)
	}
	p.next = ""
	return nil
}

func document(d any) (string, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encode document: %w", err) // documents hold nothing that JSON cannot
	}
	return string(b), nil
}

// match tells whether every field of the filter has its value in the document, or among its elements.
func match(document string, filter map[string]string) (bool, error) {
	if len(filter) == 0 {
		return true, nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(document)))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return false, fmt.Errorf("filter documents: %w", err)
	}
	for field, want := range filter {
		if !holds(fields[field], want) {
			return false, nil
		}
	}
	return true, nil
}

func holds(value any, want string) bool {
	switch v := value.(type) {
	case nil:
		return want == ""
	case []any:
		return slices.ContainsFunc(v, func(element any) bool { return holds(element, want) })
	case map[string]any:
		return false
	default:
		return fmt.Sprint(v) == want
	}
}
