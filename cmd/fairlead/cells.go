// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"fairlead.io/fairlead/api/records"
)

func header(k records.Kind) []string {
	var titles []string
	for _, c := range k.Columns {
		titles = append(titles, c.Title)
	}
	return titles
}

// row gives a document's cells. Errors: it is not a JSON object.
func row(k records.Kind, document json.RawMessage) ([]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // revisions do not fit a float
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("a document of %s: %w; use the release of fairlead that the group runs", k.Name, err)
	}
	var cells []string
	for _, c := range k.Columns {
		cells = append(cells, cell(at(fields, strings.Split(c.Path, "."))))
	}
	return cells, nil
}

// nameOf is what the object is called in requests. Errors: it is not a JSON object with a name.
func nameOf(k records.Kind, document json.RawMessage) (string, error) {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(document, &named); err != nil || named.Name == "" {
		return "", fmt.Errorf("a document of %s has no name; use the release of fairlead that the group runs", k.Name)
	}
	return named.Name, nil
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

// cell shows a value in a table.
func cell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		return yesNo(v)
	case []any:
		return listed(v)
	case map[string]any:
		if v["epoch"] != nil && v["index"] != nil {
			return fmt.Sprintf("%v.%v", v["epoch"], v["index"])
		}
		return fmt.Sprint(v)
	default:
		return fmt.Sprint(v)
	}
}

// shownElements is how many elements of a list a cell shows; all of them are in JSON and YAML.
const shownElements = 8

func listed(list []any) string {
	var parts []string
	for _, element := range list[:min(len(list), shownElements)] {
		parts = append(parts, cell(element))
	}
	if rest := len(list) - shownElements; rest > 0 {
		parts = append(parts, fmt.Sprintf("… %d more", rest))
	}
	return strings.Join(parts, ",")
}
