// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"time"

	"pgregory.net/rapid"
)

// Every supported shape, in one type. Declared out of the order of its numbers, and with numbers whose tags
// take one, two and five bytes.
type sample struct {
	Name     string         `pb:"2"`
	On       bool           `pb:"1"`
	Int      int            `pb:"3"`
	Int8     int8           `pb:"4"`
	Int16    int16          `pb:"5"`
	Int32    int32          `pb:"6"`
	Int64    int64          `pb:"7"`
	Uint     uint           `pb:"8"`
	Uint8    uint8          `pb:"9"`
	Uint16   uint16         `pb:"10"`
	Uint32   uint32         `pb:"11"`
	Uint64   uint64         `pb:"12"`
	Wait     time.Duration  `pb:"13"`
	Raw      []byte         `pb:"14"`
	ID       groupID        `pb:"15"`
	Addr     netip.Addr     `pb:"16"`
	VIP      vip            `pb:"17"`
	Prefix   netip.Prefix   `pb:"18"`
	Inner    inner          `pb:"19"`
	Maybe    *inner         `pb:"20"`
	Self     *sample        `pb:"21"`
	Names    []string       `pb:"2048"`
	Flags    []bool         `pb:"23"`
	Ints     []int32        `pb:"24"`
	Uints    []uint64       `pb:"25"`
	Waits    ticks          `pb:"26"`
	Raws     [][]byte       `pb:"27"`
	IDs      []groupID      `pb:"28"`
	Addrs    []netip.Addr   `pb:"29"`
	Prefixes []netip.Prefix `pb:"30"`
	Inners   []inner        `pb:"31"`
	Pointers []*inner       `pb:"32"`
	Last     state          `pb:"536870911"`
	Alike    *alike         `pb:"inline"`
	Rare     *rare          `pb:"inline"`
	Cache    map[string]int `pb:"-"`
	hidden   int
}

type (
	groupID [16]byte
	vip     netip.Addr
	state   uint8
	ticks   []time.Duration
	inner   struct {
		Port  uint16 `pb:"1"`
		Label string `pb:"2"`
	}
	empty struct{}
	alike struct {
		Text string `pb:"22"`
		One  inner  `pb:"2047"`
	}
	rare struct {
		Many    []inner `pb:"33"`
		Perhaps *inner  `pb:"34"`
	}
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	addrType     = reflect.TypeFor[netip.Addr]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)

// genType draws a struct type out of everything that may stand in one.
func genType(depth int) *rapid.Generator[reflect.Type] {
	return rapid.Custom(func(t *rapid.T) reflect.Type {
		numbers := rapid.SliceOfNDistinct(rapid.SampledFrom([]int{
			1, 2, 3, 4, 5, 15, 16, 17, 2047, 2048, 18999, 20000, 1<<29 - 1,
		}), 0, 6, rapid.ID).Draw(t, "numbers")
		var fields, inside []reflect.StructField
		for i, n := range numbers {
			to := &fields
			if rapid.IntRange(0, 3).Draw(t, "inlined") == 0 {
				to = &inside
			}
			*to = append(*to, reflect.StructField{
				Name: fmt.Sprintf("F%d", i),
				Type: drawFieldType(t, depth),
				Tag:  reflect.StructTag(fmt.Sprintf(`pb:"%d"`, n)),
			})
		}
		if len(inside) > 0 {
			fields = append(fields, reflect.StructField{Name: "Inside", Type: reflect.PointerTo(reflect.StructOf(inside)), Tag: `pb:"inline"`})
		}
		return reflect.StructOf(fields)
	})
}

func drawFieldType(t *rapid.T, depth int) reflect.Type {
	leaves := []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](),
		reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](),
		reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[string](),
		reflect.TypeFor[[]byte](), reflect.TypeFor[[3]byte](), reflect.TypeFor[[0]byte](),
		reflect.TypeFor[groupID](), reflect.TypeFor[vip](), reflect.TypeFor[empty](), durationType, addrType, prefixType,
	}
	elem := rapid.SampledFrom(leaves).Draw(t, "leaf")
	if depth > 0 && rapid.IntRange(0, 2).Draw(t, "nest") == 0 {
		elem = genType(depth-1).Draw(t, "struct")
		if rapid.Bool().Draw(t, "pointer") {
			elem = reflect.PointerTo(elem)
		}
	}
	isByte := elem.Kind() == reflect.Uint8 // a slice of these is bytes, which is a leaf
	if !isByte && rapid.IntRange(0, 2).Draw(t, "repeat") == 0 {
		return reflect.SliceOf(elem)
	}
	return elem
}

// genSample draws a value of the type that has every shape in it, often with zeroes. Empty slices are nil.
func genSample() *rapid.Generator[*sample] {
	return rapid.Custom(func(t *rapid.T) *sample {
		return drawValue(t, reflect.TypeFor[sample]()).(*sample)
	})
}

// drawValue draws a pointer to a value of a struct type.
func drawValue(t *rapid.T, goType reflect.Type) any {
	v := reflect.New(goType)
	fill(t, v.Elem(), "value", 3)
	return v.Interface()
}

func fill(t *rapid.T, v reflect.Value, name string, depth int) {
	switch v.Type() {
	case addrType, reflect.TypeFor[vip]():
		v.Set(reflect.ValueOf(genAddr().Draw(t, name)).Convert(v.Type()))
		return
	case prefixType:
		v.Set(reflect.ValueOf(genPrefix().Draw(t, name)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(genInt(v.Type().Bits()).Draw(t, name))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(genInt(v.Type().Bits()).Draw(t, name)) >> (64 - v.Type().Bits()))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "a", "shop/checkout", "köln", "\x00", string(make([]byte, 200))}).Draw(t, name))
	case reflect.Array:
		reflect.Copy(v, reflect.ValueOf(rapid.SampledFrom([]string{"", "x", "0123456789abcdef"}).Draw(t, name)))
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, name+" set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), name, depth-1)
		}
	case reflect.Slice:
		fillSlice(t, v, name, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; v.Type().Field(i).Tag.Get("pb") {
			case "", "-":
			case "inline":
				inside := reflect.New(v.Field(i).Type().Elem())
				if fill(t, inside.Elem(), name, depth); !inside.Elem().IsZero() { // which is the same as nil
					v.Field(i).Set(inside)
				}
			default:
				fill(t, v.Field(i), name, depth-1)
			}
		}
	}
}

func fillSlice(t *rapid.T, v reflect.Value, name string, depth int) {
	count := rapid.IntRange(0, 3).Draw(t, name+" count")
	if count == 0 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), count, count))
	for i := range count {
		if elem := v.Index(i); elem.Kind() == reflect.Pointer {
			elem.Set(reflect.New(elem.Type().Elem())) // nil has no bytes here
			fill(t, elem.Elem(), name, depth-1)
		} else {
			fill(t, elem, name, depth)
		}
	}
}

func genInt(bits int) *rapid.Generator[int64] {
	least := int64(math.MinInt64) >> (64 - bits)
	return rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, -1, 63, 64, -64, -65, least, -(least + 1)}),
		rapid.Int64Range(least, -(least+1)),
	)
}

func genAddr() *rapid.Generator[netip.Addr] {
	return rapid.SampledFrom([]netip.Addr{
		{}, netip.IPv4Unspecified(), netip.IPv6Unspecified(), netip.MustParseAddr("192.0.2.1"),
		netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("fe80::1%eth0"),
		netip.MustParseAddr("::ffff:192.0.2.1").WithZone("z"),
	})
}

func genPrefix() *rapid.Generator[netip.Prefix] {
	return rapid.SampledFrom([]netip.Prefix{
		{}, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("192.0.2.1/24"),
		netip.MustParsePrefix("2001:db8::/32"), netip.PrefixFrom(netip.MustParseAddr("::ffff:192.0.2.1"), 120),
	})
}
