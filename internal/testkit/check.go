// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Seed is where the draws of every property begin, unless another seed was chosen. It has no meaning; with another one all
// properties meet other values.
const Seed = 1

const (
	maxRounds = 10
	// The seeds of a round's checks are a few thousand apart at most.
	roundStride = 1 << 32
)

// rapid has registered its flags when this package is initialised, and the command line is read later: it counts.
func init() {
	setDefault("rapid.seed", "RAPID_SEED", strconv.Itoa(Seed))
	setDefault("rapid.nofailfile", "RAPID_NOFAILFILE", "true") // or the next run would begin with what the file has
	if drawsFolder != "" {
		setDefault("rapid.v", "", "true") // rapid tells the values that were drawn
	}
}

func setDefault(name, env, value string) {
	if _, chosen := os.LookupEnv(env); chosen {
		return
	}
	f := flag.Lookup(name)
	if err := f.Value.Set(value); err != nil {
		panic(err)
	}
	f.DefValue = value
}

// Check fails t if prop fails for one of the values that it draws, which are the same on every run.
func Check(t rapid.TB, prop func(*rapid.T)) {
	t.Helper()
	check(t, 0, prop)
}

// CheckUntil checks prop once, and then again with other values as long as missing has something to tell, ten times at most. It fails t
// with that if it still does.
//
// A property that must have met certain cases counts them, and missing tells in words which it did not meet; "" means that
// it met all of them. A short run draws a fifth as often, and so may meet too little in the first round.
func CheckUntil(t rapid.TB, missing func() string, prop func(*rapid.T)) {
	t.Helper()
	for round := range uint64(maxRounds) {
		check(t, round, prop)
		if missing() == "" {
			return
		}
	}
	t.Errorf("after %d rounds of draws: %s", maxRounds, missing())
}

func check(t rapid.TB, round uint64, prop func(*rapid.T)) {
	t.Helper()
	w := &watched{TB: t, seeded: useSeed(round)}
	defer w.seeded()
	if drawsFolder != "" {
		w.draws = newDraws(drawsFolder, packagePath(), t.Name())
		prop = w.draws.counted(prop)
	}
	passed := false
	defer func() {
		if !passed && t.Failed() && chosenSeed() != 0 {
			t.Logf("[testkit] to repeat all of it: %s", command(t.Name()))
		}
	}()
	rapid.Check(w, prop)
	passed = true
	if w.draws != nil {
		if err := w.draws.save(); err != nil {
			t.Errorf("[testkit] %v", err)
		}
	}
}

// watched is a test as rapid sees it: without a deadline, which is none of rapid's business and must not be asked for in a
// synctest bubble.
type watched struct {
	rapid.TB
	seeded func() // to be called once rapid has read the seed
	draws  *draws // nil if nobody wants to know
}

// Failed is what rapid asks first after it has read the seed.
func (w *watched) Failed() bool {
	w.seeded()
	return w.TB.Failed()
}

func (w *watched) Logf(format string, args ...any) {
	if w.draws.hears(format, args) {
		return
	}
	w.Helper()
	w.TB.Logf(format, args...)
}

func (w *watched) Log(args ...any) {
	if w.draws.hears("", args) {
		return
	}
	w.Helper()
	w.TB.Log(args...)
}

func (w *watched) Errorf(format string, args ...any) {
	w.draws.fail()
	w.Helper()
	w.TB.Errorf(format, args...)
}

// Context is the test's, of which rapid makes those of checks.
func (w *watched) Context() context.Context {
	if t, ok := w.TB.(interface{ Context() context.Context }); ok {
		return t.Context()
	}
	return context.Background()
}

func (w *watched) Output() io.Writer {
	if t, ok := w.TB.(interface{ Output() io.Writer }); ok {
		return t.Output()
	}
	return io.Discard
}

var (
	seedFlag   sync.Mutex // held from writing rapid.seed until rapid has read it: tests may run in parallel
	chosenSeed = sync.OnceValue(func() uint64 {
		seed, err := strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
		if err != nil {
			panic(err)
		}
		return seed
	})
)

// useSeed has the next call of rapid begin with the seed of a round. No other one can begin until release is called, which is
// safe to repeat.
func useSeed(round uint64) (release func()) {
	seedFlag.Lock()
	seed, value := chosenSeed(), flag.Lookup("rapid.seed").Value
	if seed == 0 || round == 0 {
		return sync.OnceFunc(seedFlag.Unlock)
	}
	_ = value.Set(strconv.FormatUint(seed+round*roundStride, 10))
	return sync.OnceFunc(func() {
		_ = value.Set(strconv.FormatUint(seed, 10))
		seedFlag.Unlock()
	})
}

// packagePath is the import path of the package under test.
var packagePath = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "./"
	}
	return strings.TrimSuffix(info.Path, ".test")
})

// command repeats a test.
func command(test string) string {
	out := fmt.Sprintf("go test %s -run '^%s$'", packagePath(), strings.ReplaceAll(regexp.QuoteMeta(test), "/", "$/^"))
	if testing.Short() {
		out += " -short"
	}
	if seed := chosenSeed(); seed != Seed {
		out += fmt.Sprintf(" -rapid.seed=%d", seed)
	}
	for _, name := range []string{"rapid.checks", "rapid.steps"} {
		if f := flag.Lookup(name); f.Value.String() != f.DefValue {
			out += fmt.Sprintf(" -%s=%s", name, f.Value)
		}
	}
	return out
}
