// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"unicode/utf8"

	"fairlead.io/fairlead/fsm/wire"
)

// Bounds of what is put into the log, in bytes. They are held where something is proposed, never by Apply: what an earlier release put
// into a log stays what it was, and may be named again (View.Fit).
const (
	// MaxCommand is how long one command may be: room for a hold of a hundred thousand objects, or a Service of as many endpoints.
	MaxCommand = 8 << 20
	// MaxEntry is how long one entry may be: what members hand each other in one message, with room to spare.
	MaxEntry = 12 << 20
	// MaxReason is how much of a proposal's actor and reason is kept. They are for people, and histories have them.
	MaxReason = 1024
	// MaxPending is how long the text of a Pending may be, and MaxMessage what a driver says.
	MaxPending = 4096
	MaxMessage = 1024
)

// ErrTooLarge says that proposals are more than one entry may hold together; nothing was proposed.
var ErrTooLarge = errors.New("more than one log entry may hold; propose fewer at a time")

// Fit tells whether a log entry can hold a proposal, and how many bytes that takes. Its error says which field is in the way: a text that is
// not UTF-8 or longer than its field allows, more than MaxCommand, or whatever encoding it panics with.
func Fit(p Proposal) (bytes int, err error) { return p.fit(nil) }

// fit is Fit, but texts that are known may be of any length.
func (p *Proposal) fit(known func(text string) bool) (bytes int, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("encode %T: panic: %v", p.Command, v)
		}
	}()
	item, err := p.item(known)
	return len(item.Body) + len(item.Actor) + len(item.Reason) + itemOverhead, err
}

// FitAddress tells whether an entry can hold an address: its zone, if any, is UTF-8 and no longer than names of interfaces are.
func FitAddress(a netip.Addr) bool { return a.Zone() == "" || wire.Check(&HopSpec{Address: a}) == nil }

// itemOverhead is more than what an item takes beside its texts.
const itemOverhead = 64

// item is a proposal as an entry has it.
func (p *Proposal) item(known func(text string) bool) (Item, error) {
	if err := wire.CheckBut(p.Command, known); err != nil {
		return Item{}, fmt.Errorf("encode %T: %w", p.Command, err)
	}
	body, err := wire.Append(nil, p.Command)
	switch {
	case err != nil:
		return Item{}, fmt.Errorf("encode %T: %w", p.Command, err)
	case len(body) > MaxCommand:
		return Item{}, fmt.Errorf("encode %T: %d bytes, at most %d are allowed", p.Command, len(body), MaxCommand)
	}
	return Item{
		Kind: p.Command.Kind(), Actor: Text(p.Actor, MaxReason), Reason: Text(p.Reason, MaxReason), AtUnixMilli: p.AtUnixMilli, Body: body,
	}, nil
}

// Unfit is the outcome of a proposal that is set aside, since no entry can hold it; err is Fit's.
func Unfit(p Proposal, err error) Outcome {
	return refuse(RejectUnfit, ObjectOf(p.Command), Text(err.Error(), MaxReason), "what a log entry may hold")
}

// Text gives s as the record takes it: as UTF-8, and cut to so many bytes, not within a character. It is for what people read.
func Text(s string, most int) string {
	if len(s) > most {
		for back := 0; back < utf8.UTFMax-1 && most > 0 && !utf8.RuneStart(s[most]); back++ {
			most--
		}
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?") // which is no longer than what it stands for
}

// ObjectOf names a command and what it is about, for people.
func ObjectOf(c Command) string {
	return strings.TrimSpace(strings.TrimPrefix(fmt.Sprintf("%T", c), "*fsm.") + " " + NameOf(c))
}

// NameOf is the first name or address in a command, which is what it is about; empty for commands about many things at once.
func NameOf(c Command) string { return Text(firstName(reflect.ValueOf(c)), maxName) }

// maxName is how much of a name is told.
const maxName = 512

// firstName is what stands first in a command, by the order of its fields.
func firstName(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Pointer:
		if !v.IsNil() {
			return firstName(v.Elem())
		}
	case reflect.Struct:
		switch at := v.Interface().(type) {
		case netip.Addr:
			return at.String()
		case netip.Prefix:
			return at.String()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("pb") != "" {
				return firstName(v.Field(i))
			}
		}
	}
	return ""
}
