// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is a parsed file. It keeps the first error, and which keys were read.
type document struct {
	file     string
	root     node
	lines    map[string]int // of keys and tables, by path
	read     map[string]bool
	err      *Error
	warnings map[string]Warning // by path
}

// node is a table of the document, or one that the file leaves out.
type node struct {
	doc  *document
	path string // "neighbors[0].config"; empty at the root
	keys map[string]any
}

func parseDocument(file string, text []byte) (*document, error) {
	d := &document{file: file, read: map[string]bool{}, warnings: map[string]Warning{}}
	var keys map[string]any
	if err := toml.Unmarshal(text, &keys); err != nil {
		e := &Error{File: file, Line: 1, Reason: err.Error(), Remedy: "the file must be TOML"}
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			e.Line, _ = bad.Position()
			e.Reason = strings.TrimPrefix(bad.Error(), "toml: ")
			e.Field = strings.Join(bad.Key(), ".")
		}
		return nil, e
	}
	d.lines = keyLines(text)
	d.root = node{d, "", lowerKeys(keys)}
	return d, nil
}

// lowerKeys makes keys lower case, since GoBGP does not tell cases apart.
func lowerKeys(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		switch t := v.(type) {
		case map[string]any:
			v = lowerKeys(t)
		case []any:
			for i := range t {
				if table, ok := t[i].(map[string]any); ok {
					t[i] = lowerKeys(table)
				}
			}
		}
		out[strings.ToLower(k)] = v
	}
	return out
}

// keyLines finds the line of every key and table in text, which is known to be well-formed.
func keyLines(text []byte) map[string]int {
	lines := map[string]int{"": 1}
	count := map[string]int{} // of tables in an array
	var p unstable.Parser
	p.Reset(text)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		path, line := table, 0
		if e.Kind != unstable.KeyValue {
			path = ""
		}
		for it := e.Key(); it.Next(); {
			part := it.Node()
			line = p.Shape(part.Raw).Start.Line
			path = join(path, strings.ToLower(string(part.Data)))
			last := it.IsLast()
			if e.Kind == unstable.ArrayTable && last {
				path = fmt.Sprintf("%s[%d]", path, count[path])
			} else if n := count[path]; n > 0 && e.Kind != unstable.KeyValue {
				path = fmt.Sprintf("%s[%d]", path, n-1) // a table within the last one of an array
			}
			if _, ok := lines[path]; !ok {
				lines[path] = line
			}
		}
		switch e.Kind {
		case unstable.ArrayTable:
			count[path[:strings.LastIndexByte(path, '[')]]++
			table = path
		case unstable.Table:
			table = path
		}
	}
	return lines
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// line returns where path stands, or the table around it.
func (d *document) line(path string) int {
	for {
		if n, ok := d.lines[path]; ok {
			return n
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 1
		}
		path = path[:i]
	}
}

func (n node) fail(key, reason, remedy string) {
	path := join(n.path, key)
	if n.doc.err == nil {
		n.doc.err = &Error{File: n.doc.file, Line: n.doc.line(path), Field: path, Reason: reason, Remedy: remedy}
	}
}

func (n node) warn(key, text, remedy string) {
	path := join(n.path, key)
	n.doc.warnings[path] = Warning{File: n.doc.file, Line: n.doc.line(path), Field: path, Text: text, Remedy: remedy}
}

func (d *document) sortedWarnings() []Warning {
	var out []Warning
	for _, w := range d.warnings {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
	})
	return out
}

// get returns the value of a key, if the file has it, and notes that it was read.
func (n node) get(key string) (any, bool) {
	n.doc.read[join(n.path, key)] = true
	v, ok := n.keys[key]
	return v, ok
}

// child returns the table of that name, empty if there is none.
func (n node) child(key string) node {
	out := node{doc: n.doc, path: join(n.path, key)}
	if v, ok := n.get(key); ok {
		if out.keys, ok = v.(map[string]any); !ok {
			n.fail(key, "is no table", fmt.Sprintf("write [%s]", out.path))
		}
	}
	return out
}

// list returns the tables of an array.
func (n node) list(key string) []node {
	v, ok := n.get(key)
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	var out []node
	for i, item := range items {
		table := node{doc: n.doc, path: fmt.Sprintf("%s[%d]", join(n.path, key), i)}
		if table.keys, ok = item.(map[string]any); !ok {
			break
		}
		out = append(out, table)
	}
	if !ok {
		n.fail(key, "is no array of tables", fmt.Sprintf("write [[%s]]", join(n.path, key)))
	}
	return out
}

// What a key that is not there means.
const (
	required = math.MinInt64
	optional = 0
)

func (n node) missing(key string) {
	n.fail(key, "is missing", fmt.Sprintf("add %s to [%s]", key, n.path))
}

// number reads a whole number; given as text or with a zero fraction it counts as well, as with GoBGP.
func (n node) number(key string, least, most, absent int64) int64 {
	v, ok := n.get(key)
	if !ok {
		if absent == required {
			n.missing(key)
			return least
		}
		return absent
	}
	number, fits := int64(0), false
	switch v := v.(type) {
	case int64:
		number, fits = v, true
	case float64:
		number, fits = int64(v), v == math.Trunc(v)
	case string:
		var err error
		number, err = strconv.ParseInt(v, 10, 64)
		fits = err == nil
	}
	if !fits || number < least || number > most {
		n.fail(key, fmt.Sprintf("%v does not fit", quoted(v)), fmt.Sprintf("write a whole number from %d to %d", least, most))
		return least
	}
	return number
}

func quoted(v any) any {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return v
}

func (n node) flag(key string, absent bool) bool {
	v, ok := n.get(key)
	if !ok {
		return absent
	}
	if b, ok := v.(bool); ok {
		return b
	}
	if s, ok := v.(string); ok {
		if b, err := strconv.ParseBool(s); err == nil {
			return b
		}
	}
	n.fail(key, fmt.Sprintf("%v is neither true nor false", quoted(v)), "write true or false")
	return absent
}

func (n node) text(key string) string {
	v, ok := n.get(key)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		n.fail(key, "is no text", "put it in quotes") // not shown: it could be a password
	}
	return s
}

func (n node) address(key string, absent int64) netip.Addr {
	v, ok := n.get(key)
	if !ok {
		if absent == required {
			n.missing(key)
		}
		return netip.Addr{}
	}
	return n.parseAddress(key, v)
}

func (n node) parseAddress(key string, v any) netip.Addr {
	s, _ := v.(string)
	a, err := netip.ParseAddr(s)
	if err != nil {
		n.fail(key, fmt.Sprintf("%v is no IP address", quoted(v)), `write it like "192.0.2.1"`)
	}
	return a.Unmap()
}

func (n node) addresses(key string) []netip.Addr {
	v, ok := n.get(key)
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		n.fail(key, "is no list", `write it like ["192.0.2.1"]`)
	}
	var out []netip.Addr
	for _, item := range items {
		out = append(out, n.parseAddress(key, item))
	}
	return out
}

// warnUnread warns of every key and table that nobody has read: of a whole table once.
func (n node) warnUnread() {
	for key, v := range n.keys {
		path := join(n.path, key)
		if !n.doc.read[path] {
			n.warn(key, "not known here, ignored", "check its spelling, or remove it")
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			node{n.doc, path, v}.warnUnread()
		case []any:
			for i, item := range v {
				if table, ok := item.(map[string]any); ok {
					node{n.doc, fmt.Sprintf("%s[%d]", path, i), table}.warnUnread()
				}
			}
		}
	}
}
