// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net/netip"
)

// Change is one step towards what is wanted: a single call of the kernel, or one transaction.
type Change interface {
	fmt.Stringer
	// note records in a view that the change was made.
	note(*View)
	// address is the only address that suffers if the change fails; zero if others do too.
	address() netip.Addr
}

type (
	// AddRule adds a rule.
	AddRule struct{ Rule Rule }
	// DeleteRule deletes one, with exactly these properties.
	DeleteRule struct{ Rule Rule }
	// PutRoute adds a route, or replaces the one with its table, destination and metric, in one step: Over, if any.
	PutRoute struct{ Route, Over Route }
	// DeleteRoute deletes a route.
	DeleteRoute struct{ Route Route }
	// TakeDefault is PutRoute of the node's default route; what it replaces is kept.
	TakeDefault struct{ Route, Over Route }
	// GiveDefault puts back what TakeDefault replaced, or deletes the route if it replaced nothing.
	GiveDefault struct{ Route Route }
	// EditFilter changes our nftables table in one transaction. With Reset the table is made anew, with the rules named
	// Filter and with Add as its only elements.
	EditFilter struct {
		Filter      string
		Reset       bool
		Add, Remove List[Element]
	}
	// Remark gives connections that bear any of the bits From the bits To instead, whether they have packets or are idle.
	Remark struct{ From, To uint32 }
	// DropFilter deletes our nftables table.
	DropFilter struct{}
	// SetSettings changes settings; what they were is kept.
	SetSettings struct{ Values map[Setting]string }
	// RestoreSettings puts back what SetSettings changed, where it is still as we left it.
	RestoreSettings struct{ Settings []Setting }
)

func (c AddRule) String() string     { return "add rule " + c.Rule.String() }
func (c DeleteRule) String() string  { return "delete rule " + c.Rule.String() }
func (c PutRoute) String() string    { return "put route " + c.Route.String() }
func (c DeleteRoute) String() string { return "delete route " + c.Route.String() }
func (c TakeDefault) String() string { return "replace the node's default by " + c.Route.String() }
func (c GiveDefault) String() string { return "restore the node's default over " + c.Route.String() }
func (c EditFilter) String() string {
	if c.Reset {
		return fmt.Sprintf("make nft table inet %s with %d elements", TableName, c.Add.Len())
	}
	return fmt.Sprintf("add %d and remove %d elements of nft table inet %s", c.Add.Len(), c.Remove.Len(), TableName)
}
func (c Remark) String() string {
	return fmt.Sprintf("mark connections with %#x, no longer with %#x", c.To, c.From)
}
func (DropFilter) String() string { return "delete nft table inet " + TableName }
func (c SetSettings) String() string {
	return fmt.Sprintf("change %d settings of interfaces", len(c.Values))
}
func (c RestoreSettings) String() string {
	return fmt.Sprintf("restore %d settings of interfaces", len(c.Settings))
}

func (c AddRule) note(v *View)    { v.Rules.Add(c.Rule) }
func (c DeleteRule) note(v *View) { v.Rules.Remove(c.Rule) }
func (c PutRoute) note(v *View) {
	v.Routes.Remove(c.Over)
	v.Routes.Add(c.Route)
}
func (c DeleteRoute) note(v *View) { v.Routes.Remove(c.Route) }
func (c TakeDefault) note(v *View) { PutRoute(c).note(v) }
func (c GiveDefault) note(v *View) { v.Routes.Remove(c.Route) }
func (c EditFilter) note(v *View) {
	v.Filter = c.Filter
	if c.Reset {
		v.Elements = Lot[Element]{}
	}
	for e := range c.Remove.All() {
		v.Elements.Remove(e)
	}
	for e := range c.Add.All() {
		v.Elements.Add(e)
	}
}
func (Remark) note(*View) {} // views do not hold connections
func (DropFilter) note(v *View) {
	v.Filter = ""
	v.Elements = Lot[Element]{}
}
func (c SetSettings) note(v *View) {
	for s, value := range c.Values {
		if _, changed := v.Changed[s]; !changed {
			v.Changed[s] = v.Settings[s]
		}
		v.Settings[s] = value
	}
}
func (c RestoreSettings) note(v *View) {
	for _, s := range c.Settings {
		v.Settings[s] = v.Changed[s]
		delete(v.Changed, s)
	}
}

func (c AddRule) address() netip.Addr    { return c.Rule.address() }
func (c DeleteRule) address() netip.Addr { return c.Rule.address() }
func (c PutRoute) address() netip.Addr {
	if c.Route.isDefault() {
		return netip.Addr{}
	}
	return c.Route.To.Addr()
}
func (c DeleteRoute) address() netip.Addr   { return PutRoute{Route: c.Route}.address() }
func (TakeDefault) address() netip.Addr     { return netip.Addr{} }
func (GiveDefault) address() netip.Addr     { return netip.Addr{} }
func (EditFilter) address() netip.Addr      { return netip.Addr{} }
func (Remark) address() netip.Addr          { return netip.Addr{} }
func (DropFilter) address() netip.Addr      { return netip.Addr{} }
func (SetSettings) address() netip.Addr     { return netip.Addr{} }
func (RestoreSettings) address() netip.Addr { return netip.Addr{} }
