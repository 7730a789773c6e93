// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// kind is one kind of object that can be read.
type kind struct {
	name    string   // plural, as the API has it
	aliases []string // what else it may be called
	columns []column // the first is the object's name
}

// column shows one value of a document; the path's fields are separated by dots, and go through lists.
type column struct{ title, path string }

// kinds lists all kinds, in the order of the help.
func kinds() []kind {
	return []kind{
		{"services", []string{"service", "svc"}, []column{{"NAME", "id"}, {"REQUESTED", "requested"}, {"PENDING", "pending.text"}}},
		{"pools", []string{"pool"}, []column{{"NAME", "name"}, {"FROM", "ranges.from"}, {"TO", "ranges.to"}, {"AUTO-ASSIGN", "autoAssign"}}},
		{"allocations", []string{"allocation", "alloc"}, []column{{"ADDRESS", "address"}, {"SERVICE", "service"}, {"POOL", "pool"}, {"SHARING", "sharingKey"}, {"RELEASING", "releasing"}}},
		{"loadbalancers", []string{"loadbalancer", "lb"}, []column{{"NAME", "id"}, {"DRIVER", "driver"}, {"ENSURED", "ensured"}}},
		{"bindings", []string{"binding", "bind"}, []column{{"NAME", "id"}, {"BALANCER", "balancer"}, {"ADDRESS", "address"}, {"STATE", "state"}, {"ATTEMPTS", "attempts"}, {"REASON", "reason"}}},
		{"operations", []string{"operation", "op"}, []column{{"SUBJECT", "subject"}, {"ACTION", "action"}, {"BINDING", "binding"}, {"BALANCER", "balancer"}, {"OPEN", "open"}, {"ATTEMPT", "attempt"}}},
		{"routes", []string{"route", "rt"}, []column{{"PREFIX", "prefix"}, {"NEXT-HOPS", "nextHops.address"}, {"STATES", "nextHops.state"}}},
		{"peers", []string{"peer"}, []column{{"NAME", "name"}, {"ADDRESS", "address"}, {"PORT", "port"}, {"ASN", "asn"}, {"LOCAL-ASN", "localASN"}}},
		{"advertisements", []string{"advertisement", "adv"}, []column{{"NAME", "name"}, {"POOLS", "pools"}, {"PEERS", "peers"}, {"COMMUNITIES", "communities"}, {"LOCAL-PREF", "localPref"}}},
		{"nodes", []string{"node", "no"}, []column{{"NAME", "id"}, {"ADDRESSES", "addresses"}, {"ELIGIBLE", "eligible"}, {"LIVENESS", "liveness"}, {"ACKNOWLEDGED", "acknowledged"}, {"WHY", "why"}}},
		{"leases", []string{"lease"}, []column{{"VIP", "vip"}, {"HOLDER", "holder"}, {"FENCE", "fence"}}},
		{"policies", []string{"policy", "pol"}, []column{{"NAME", "id"}, {"UID", "uid"}}},
		holdsKind(),
		{"members", []string{"member"}, []column{{"SERVER", "server"}, {"NAME", "name"}, {"RAFT", "raft"}, {"API", "api"}, {"FORMAT", "format"}, {"VERSION", "version"}}},
	}
}

// holdsKind has its own command, too.
func holdsKind() kind {
	return kind{"holds", []string{"hold"}, []column{{"ID", "id"}, {"OF", "of"}, {"SUBJECTS", "subjects"}, {"SINCE", "since"}, {"RELEASED", "released"}, {"WHY", "why"}}}
}

// kindNamed finds a kind by its name or an alias, whatever the case.
func kindNamed(name string) (kind, bool) {
	name = strings.ToLower(name)
	for _, k := range kinds() {
		if k.name == name || slices.Contains(k.aliases, name) {
			return k, true
		}
	}
	return kind{}, false
}

func kindNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

func kindsHelp() string {
	var b strings.Builder
	for _, k := range kinds() {
		fmt.Fprintf(&b, "  %-15s %s\n", k.name, strings.Join(k.aliases, ", "))
	}
	return strings.TrimRight(b.String(), "\n")
}

func (k kind) header() []string {
	var titles []string
	for _, c := range k.columns {
		titles = append(titles, c.title)
	}
	return titles
}

// row gives a document's cells. Errors: it is not a JSON object.
func (k kind) row(document json.RawMessage) ([]string, error) {
	fields, err := decode(document)
	if err != nil {
		return nil, fmt.Errorf("a document of %s: %w; this program and the group are of different releases", k.name, err)
	}
	var cells []string
	for _, c := range k.columns {
		cells = append(cells, text(at(fields, strings.Split(c.path, "."))))
	}
	return cells, nil
}

// nameOf is what the object is called in requests.
func (k kind) nameOf(document json.RawMessage) (string, error) {
	row, err := k.row(document)
	if err != nil {
		return "", err
	}
	return row[0], nil
}

func decode(document json.RawMessage) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // revisions do not fit a float
	var fields map[string]any
	err := decoder.Decode(&fields)
	return fields, err
}

// at follows a path; in a list, for each of its elements.
func at(value any, path []string) any {
	if list, ok := value.([]any); ok {
		var found []any
		for _, element := range list {
			found = append(found, at(element, path))
		}
		return found
	}
	if len(path) == 0 {
		return value
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	return at(fields[path[0]], path[1:])
}

// text shows a value in a cell.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		return yesNo(v)
	case []any:
		var parts []string
		for _, element := range v {
			parts = append(parts, text(element))
		}
		return strings.Join(parts, ",")
	case map[string]any:
		if v["epoch"] != nil && v["index"] != nil {
			return fmt.Sprintf("%v.%v", v["epoch"], v["index"])
		}
		return fmt.Sprint(v)
	default:
		return fmt.Sprint(v)
	}
}
