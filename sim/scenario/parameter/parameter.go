// SPDX-License-Identifier: Apache-2.0

// Package parameter is how faults and steps of users are told the particulars: texts by name, as they stand in the file
// of a scenario.
//
// It promises that whoever asks for a value after Check gets it, or the default where there is none. Start reading at
// Values.
package parameter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parameter is one that may be given.
type Parameter struct {
	Name string
	Text string // for people
	// Required says that there is no default.
	Required bool
	// wrong tells what is wrong with a value; names are the machines that exist.
	wrong func(text string, names []string) error
}

// Must gives the parameter as one that has to be given.
func (p Parameter) Must() Parameter {
	p.Required = true
	return p
}

// Duration is a length of time.
func Duration(name, text string) Parameter {
	return Parameter{Name: name, Text: text, wrong: func(text string, _ []string) error {
		if _, err := time.ParseDuration(text); err != nil {
			return errors.New(`not a duration; write one such as "1.5s"`)
		}
		return nil
	}}
}

// Number is a whole number from least to most.
func Number(name, text string, least, most int) Parameter {
	return Parameter{Name: name, Text: text, wrong: func(text string, _ []string) error {
		if n, err := strconv.Atoi(text); err != nil || n < least || n > most {
			return fmt.Errorf("not a number from %d to %d", least, most)
		}
		return nil
	}}
}

// Share is a number above 0, up to 1.
func Share(name, text string) Parameter {
	return Parameter{Name: name, Text: text, wrong: func(text string, _ []string) error {
		if x, err := strconv.ParseFloat(text, 64); err != nil || !(x > 0 && x <= 1) {
			return errors.New(`not a share; write one such as "0.5"`)
		}
		return nil
	}}
}

// OneOf is one of some words.
func OneOf(name, text string, values ...string) Parameter {
	return Parameter{Name: name, Text: text, wrong: func(text string, _ []string) error {
		if !slices.Contains(values, text) {
			return fmt.Errorf("unknown; choose one of %s", strings.Join(values, ", "))
		}
		return nil
	}}
}

// Words are some words of a list, with commas between them.
func Words(name, text string, values ...string) Parameter {
	return Parameter{Name: name, Text: text, wrong: func(text string, _ []string) error {
		for _, word := range strings.Split(text, ",") {
			if !slices.Contains(values, word) {
				return fmt.Errorf("%q is unknown; choose of %s", word, strings.Join(values, ", "))
			}
		}
		return nil
	}}
}

// Machines are names of machines, or words that stand for several, with commas between them.
func Machines(name, text string, words ...string) Parameter {
	return Parameter{Name: name, Text: text, wrong: func(text string, names []string) error {
		for _, word := range strings.Split(text, ",") {
			if !slices.Contains(names, word) && !slices.Contains(words, word) {
				return fmt.Errorf("%q does not exist; choose of %s", word, strings.Join(slices.Concat(names, words), ", "))
			}
		}
		return nil
	}}
}

// Text is anything that a function has nothing against.
func Text(name, text string, wrong func(string) error) Parameter {
	return Parameter{Name: name, Text: text, wrong: func(text string, _ []string) error { return wrong(text) }}
}

// Values are parameters that were given.
type Values map[string]string

// Check tells what is wrong with the values for what, which has these parameters, in a world with these machines: which
// one, why, and what to do.
func (v Values) Check(what string, all []Parameter, names []string) error {
	var known []string
	for _, p := range all {
		known = append(known, p.Name)
		text, given := v[p.Name]
		switch {
		case !given && p.Required:
			return fmt.Errorf("with.%s: missing; %s needs it: %s", p.Name, what, p.Text)
		case !given:
			continue
		}
		if err := p.wrong(text, names); err != nil {
			return fmt.Errorf("with.%s: %q: %w", p.Name, text, err)
		}
	}
	for _, name := range v.Names() {
		switch {
		case len(known) == 0:
			return fmt.Errorf("with.%s: unknown; %s has no parameters", name, what)
		case !slices.Contains(known, name):
			return fmt.Errorf("with.%s: unknown; %s has %s", name, what, strings.Join(known, ", "))
		}
	}
	return nil
}

// Names lists the names of what is given, in order.
func (v Values) Names() []string { return slices.Sorted(maps.Keys(v)) }

// Clone copies them.
func (v Values) Clone() Values { return maps.Clone(v) }

// String lists them in order of their names.
func (v Values) String() string {
	var all []string
	for _, name := range v.Names() {
		all = append(all, name+"="+v[name])
	}
	return strings.Join(all, " ")
}

// Duration gives a length of time.
func (v Values) Duration(name string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(v[name]); err == nil {
		return d
	}
	return otherwise
}

// Number gives a whole number.
func (v Values) Number(name string, otherwise int) int {
	if n, err := strconv.Atoi(v[name]); err == nil {
		return n
	}
	return otherwise
}

// Share gives a share.
func (v Values) Share(name string, otherwise float64) float64 {
	if x, err := strconv.ParseFloat(v[name], 64); err == nil {
		return x
	}
	return otherwise
}

// Words gives a list; none where it is not given.
func (v Values) Words(name string) []string {
	if v[name] == "" {
		return nil
	}
	return strings.Split(v[name], ",")
}

// Set notes a value, in values that may have been nil.
func (v *Values) Set(name string, value any) {
	if *v == nil {
		*v = Values{}
	}
	(*v)[name] = fmt.Sprint(value)
}
