// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

var errDisk = errors.New("input/output error")

func wantDeleted(t *testing.T, b *bench, want string) {
	t.Helper()
	w := b.source.World()
	var names []string
	for _, d := range w.Deleted {
		if d.How != world.ByScan {
			t.Errorf("%s went by %q", d.Ref, d.How)
		}
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != want {
		t.Fatalf("evidence of deletions of %q, want %q", got, want)
	}
}

func started(t *testing.T, services ...string) *bench {
	b := newBench()
	for _, s := range services {
		b.write(s+".yaml", service(s))
	}
	b.pass(3 * time.Second)
	wantServices(t, b, strings.Join(services, " "))
	return b
}

func TestNothingIsListedBeforeTheFirstReading(t *testing.T) {
	t.Parallel()
	b := newBench()
	w := b.source.World()
	if v, ok := w.View(world.KindService); !ok || v.Listed || v.Complete || w.Complete {
		t.Fatalf("an unread folder gives %+v", v)
	}
}

func TestNewFileCountsOnceItStands(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("web.yaml", service("web"))
	b.source.scan()
	wantServices(t, b, "")
	if w := b.source.World(); w.Kinds[0].Listed {
		t.Fatal("a folder with a file that may be half written counts as listed")
	}
	b.clock.move(settle)
	b.source.scan()
	wantServices(t, b, "web")
	if w := b.source.World(); !w.Complete || w.Kinds[0].Lists == 0 {
		t.Fatalf("complete %t, lists %d", w.Complete, w.Kinds[0].Lists)
	}
}

func TestHalfWrittenFileCountsAsItWas(t *testing.T) {
	t.Parallel()
	b := started(t, "web")
	text := service("web", "externalIPs: [203.0.113.10]", "loadBalancerIP: 203.0.113.11")
	for end := 10; end < len(text); end += 10 {
		b.write("web.yaml", text[:end]) // every 50 ms some more
		b.pass(settle / 2)
		if s := b.source.World().Services; len(s) != 1 || len(s[0].ExternalIPs) != 0 {
			t.Fatalf("after %d of %d bytes: %+v", end, len(text), s)
		}
	}
	b.write("web.yaml", text)
	b.pass(2 * settle)
	if s := b.source.World().Services; len(s) != 1 || len(s[0].ExternalIPs) != 1 || len(s[0].Extras().Requested) != 1 {
		t.Fatalf("written whole: %+v", s)
	}
}

func TestBrokenFileKeepsItsObjectsAndSaysWhere(t *testing.T) {
	t.Parallel()
	b := started(t, "web")
	b.write("web.yaml", "# one\n"+service("web")+"---\n# two\nkind: Service\n  apiVersion: v1\n")
	b.pass(3 * time.Second)
	wantServices(t, b, "web")
	wantProblem(t, b, "web.yaml:12: mapping values are not allowed in this context")
	if w := b.source.World(); !w.Complete {
		t.Error("a broken file whose objects are known makes the view incomplete")
	}
	b.write("web.yaml", service("web"))
	b.pass(3 * time.Second)
	if w := b.source.World(); len(w.Problems) > 0 {
		t.Errorf("mended, but %v", w.Problems)
	}
}

func TestFileThatWasNeverReadMakesTheViewIncomplete(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("web.yaml", service("web"))
	b.write("bad.yaml", "a: b: c\n")
	b.pass(3 * time.Second)
	wantServices(t, b, "web")
	w := b.source.World()
	if v, _ := w.View(world.KindService); !v.Listed || v.Complete || v.Lists != 0 {
		t.Fatalf("what bad.yaml holds is unknown, yet the view is %+v", v)
	}
}

func TestFolderThatFailsRemovesNothing(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*bench){
		"missing":          func(b *bench) { b.disk.broken["."] = fs.ErrNotExist },
		"unreadable":       func(b *bench) { b.disk.broken["."] = fs.ErrPermission },
		"empty":            func(b *bench) { b.disk.files = fstest.MapFS{} },
		"only-other-files": func(b *bench) { b.disk.files = fstest.MapFS{"README.md": {Data: []byte("hello")}} },
		"unreadable-file":  func(b *bench) { b.disk.broken["api.yaml"] = errDisk },
		"unreadable-subfolder": func(b *bench) {
			b.disk.files["sub/x.yaml"] = &fstest.MapFile{}
			b.disk.broken["sub"] = fs.ErrPermission
		},
		"pipe-in-its-place": func(b *bench) { b.disk.files["api.yaml"] = &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o644} },
		"unreadable-and-others-missing": func(b *bench) {
			b.disk.broken["api.yaml"] = errDisk
			delete(b.disk.files, "web.yaml")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := started(t, "api", "web")
			lists := b.source.World().Kinds[0].Lists
			fail(b)
			b.pass(time.Minute)
			wantServices(t, b, "api web")
			wantDeleted(t, b, "")
			w := b.source.World()
			if w.Complete || w.Kinds[0].Complete || w.Kinds[0].Lists > lists {
				t.Errorf("the view counts as complete: %+v", w.Kinds[0])
			}
			if !w.Kinds[0].Listed || w.Age < 50*time.Second {
				t.Errorf("listed %t, age %v", w.Kinds[0].Listed, w.Age)
			}
			if len(w.Problems) == 0 || w.Problems[0].Remedy == "" {
				t.Errorf("problems without remedy: %v", w.Problems)
			}
		})
	}
}

func TestDeletedFileIsEvidenceAfterAWhile(t *testing.T) {
	t.Parallel()
	b := started(t, "api", "web")
	delete(b.disk.files, "web.yaml")
	b.pass(gone - time.Millisecond)
	wantServices(t, b, "api web")
	b.pass(2 * time.Second)
	wantServices(t, b, "api")
	wantDeleted(t, b, "web")
	b.write("web.yaml", service("web"))
	b.pass(2 * time.Second)
	wantServices(t, b, "api web")
	wantDeleted(t, b, "") // it is back
}

func TestFileThatIsAwayForAMomentIsNotGone(t *testing.T) {
	t.Parallel()
	b := started(t, "api", "web")
	for range 5 {
		saved := b.disk.files["web.yaml"]
		delete(b.disk.files, "web.yaml")
		b.pass(gone / 2)
		b.disk.files["web.yaml"] = saved
		b.pass(gone / 2)
		wantServices(t, b, "api web")
	}
	wantDeleted(t, b, "")
}

func TestRenamedFileChangesNothing(t *testing.T) {
	t.Parallel()
	b := started(t, "api", "web")
	b.disk.files["renamed.yaml"] = b.disk.files["web.yaml"]
	delete(b.disk.files, "web.yaml")
	for range 40 {
		b.pass(50 * time.Millisecond)
		wantServices(t, b, "api web")
		if w := b.source.World(); len(w.Problems) > 0 {
			t.Fatalf("renaming is a problem: %v", w.Problems)
		}
	}
	wantDeleted(t, b, "")
}

func TestWhatIsMissingAfterTroubleWasNotSeenToGo(t *testing.T) {
	t.Parallel()
	b := started(t, "api", "web")
	b.disk.broken["."] = errDisk
	b.pass(3 * time.Second)
	delete(b.disk.files, "web.yaml")
	delete(b.disk.broken, ".")
	b.pass(3 * time.Second)
	wantServices(t, b, "api")
	wantDeleted(t, b, "")
	b.write("web.yaml", service("web"))
	b.pass(3 * time.Second)
	delete(b.disk.files, "web.yaml")
	b.pass(3 * time.Second)
	wantDeleted(t, b, "web") // the trouble is over
}

func TestObjectDroppedFromAFileIsEvidence(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("all.yaml", service("api")+"---\n"+service("web"))
	b.pass(3 * time.Second)
	b.write("all.yaml", service("api"))
	b.pass(settle * 2) // enough for an edit, not for one that drops something
	wantServices(t, b, "api web")
	b.pass(3 * time.Second)
	wantServices(t, b, "api")
	wantDeleted(t, b, "web")
}

func TestEmptiedFileKeepsItsObjects(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "comments": "# nothing\n---\n# here\n"} {
		t.Run(name, func(t *testing.T) {
			b := started(t, "api", "web")
			b.write("web.yaml", text)
			b.pass(time.Minute)
			wantServices(t, b, "api web")
			wantDeleted(t, b, "")
			wantProblem(t, b, "delete the file if its objects shall go")
		})
	}
}

// A file that is cut off may be YAML still. What a document that is no object was is not known, so that nothing went with it.
func TestFileWithADocumentThatIsNoObjectDropsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, problem string }{
		"cut in the first":  {"apiVersion: v1\n", "web.yaml:1: no Kubernetes object: it has no kind (mend it, or delete it if its object shall go; until then the file counts as it was)"},
		"cut in the second": {service("web") + "---\napiVersion: v1\n", "no Kubernetes object: it has no kind"},
		"without a name":    {service("web") + "---\napiVersion: v1\nkind: Service\nmetadata:\n", "metadata.name: empty"},
		"nonsense":          {"oops\n", "a text where a mapping belongs"},
		"a list":            {"[1, 2]\n", "a list where a mapping belongs"},
		"a list cut off":    {"apiVersion: v1\nkind: List\nitems:\n", "a List without items"},
		"nothing":           {"null\n", "no Kubernetes object"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.write("other.yaml", service("other"))
			b.write("web.yaml", service("web")+"---\n"+service("api"))
			b.pass(3 * time.Second)
			b.write("web.yaml", c.text)
			b.pass(time.Minute)
			wantServices(t, b, "api other web")
			wantDeleted(t, b, "")
			wantProblem(t, b, c.problem)
			b.write("web.yaml", service("web"))
			b.pass(3 * time.Second)
			wantServices(t, b, "other web")
			wantDeleted(t, b, "api")
		})
	}
}

// Another process may have read what a file held before somebody emptied it, or cut it off: a fresh one does not know it.
func TestFilesThatMayHaveHeldMoreMakeTheViewIncomplete(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "comments": "# nothing\n", "cut off": "apiVersion: v1\n", "cut off behind an object": service("web") + "---\nkind: Service\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.write("api.yaml", service("api"))
			b.write("web.yaml", text)
			b.pass(time.Minute)
			if w := b.source.World(); w.Complete || !w.Kinds[0].Listed {
				t.Errorf("complete %t, listed %t", w.Complete, w.Kinds[0].Listed)
			}
			wantProblem(t, b, "web.yaml")
			delete(b.disk.files, "web.yaml")
			b.pass(3 * time.Second)
			if !b.source.World().Complete {
				t.Error("it is deleted, and the view is incomplete")
			}
		})
	}
}

// Which of two definitions counts does not hang on who leads: one who has read neither before takes none, and the record stays as it is.
func TestWhoReadsTwoDefinitionsFirstTakesNeither(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("a.yaml", service("web", "externalIPs: [203.0.113.99]"))
	b.write("web.yaml", service("web", "externalIPs: [203.0.113.10]"))
	b.pass(3 * time.Second)
	if w := b.source.World(); len(w.Services) != 0 || len(w.Unusable) != 1 || !w.Complete {
		t.Errorf("Services %v, unusable %v, complete %t", w.Services, w.Unusable, w.Complete)
	}
	wantProblem(t, b, "web.yaml:1: Service default/web: defined in a.yaml:1 otherwise (remove one of them; until then none of them counts)")
	b.write("a.yaml", service("web", "externalIPs: [203.0.113.10]"))
	b.pass(3 * time.Second)
	wantServices(t, b, "web")
	wantProblem(t, b, "defined in a.yaml:1 already")
}

// A file that is deleted while the folder is read is no trouble.
func TestFileThatGoesWhileTheFolderIsReadWasDeleted(t *testing.T) {
	t.Parallel()
	b := started(t, "api", "web")
	b.disk.vanishing = "web.yaml"
	b.source.scan()
	b.pass(3 * time.Second)
	wantServices(t, b, "api")
	wantDeleted(t, b, "web")
	if w := b.source.World(); len(w.Problems) > 0 || b.log.Len() > 0 {
		t.Errorf("%v; log:\n%s", w.Problems, b.log.String())
	}
}

func TestInvalidObjectKeepsItsLastGoodForm(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("web.yaml", service("web", "externalIPs: [203.0.113.10]"))
	b.pass(3 * time.Second)
	b.write("web.yaml", service("web", "externalIPs: [203.0.113.300]"))
	b.pass(3 * time.Second)
	s := b.source.World().Services
	if len(s) != 1 || len(s[0].ExternalIPs) != 1 || s[0].ExternalIPs[0].String() != "203.0.113.10" {
		t.Fatalf("%+v", s)
	}
	wantProblem(t, b, `web.yaml:8: Service default/web: spec.externalIPs[0]: "203.0.113.300" is no IP address`)
	wantProblem(t, b, "its last good form stays in use")
	wantDeleted(t, b, "")
}

func TestObjectThatWasNeverValidIsUnusableNotAbsent(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("web.yaml", service("web", "externalIPs: [nonsense]"))
	b.pass(3 * time.Second)
	w := b.source.World()
	if len(w.Services) != 0 || len(w.Unusable) != 1 || w.Unusable[0].String() != "Service default/web" {
		t.Fatalf("services %v, unusable %v", w.Services, w.Unusable)
	}
	if !w.Complete {
		t.Error("the object is known by name, so the list is complete")
	}
}

func TestSecondDefinitionChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("web.yaml", service("web", "externalIPs: [203.0.113.10]"))
	b.pass(3 * time.Second)
	b.write("a.yaml", "\n"+service("web", "externalIPs: [203.0.113.99]")) // sorts before
	b.pass(3 * time.Second)
	if s := b.source.World().Services; len(s) != 1 || s[0].ExternalIPs[0].String() != "203.0.113.10" {
		t.Fatalf("%+v", s)
	}
	wantProblem(t, b, "a.yaml:2: Service default/web: defined in web.yaml:1 already (remove one of them")
	delete(b.disk.files, "web.yaml")
	b.pass(3 * time.Second)
	if s := b.source.World().Services; len(s) != 1 || s[0].ExternalIPs[0].String() != "203.0.113.99" {
		t.Fatalf("the other definition does not take over: %+v", s)
	}
	wantDeleted(t, b, "")
}

func TestOnlyManifestsAreRead(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("a.yaml", service("a"))
	b.write("deep/er/b.YML", service("b"))
	b.write("c.json", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"c"},"spec":{"ports":[{"port":80}]}}`)
	b.write("d.txt", service("d"))
	b.write(".e.yaml", service("e"))
	b.write(".git/f.yaml", service("f"))
	b.write("g.yaml~", service("g"))
	b.pass(3 * time.Second)
	wantServices(t, b, "a b c")
}

func TestUnknownKindsAreSaidOncePerFileAndChangeNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("a.yaml", service("a")+"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: dx}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: dy}\n")
	b.pass(3 * time.Second)
	w := b.source.World()
	if len(w.Problems) != 1 || w.Problems[0].Severity != world.Ignored || w.Problems[0].Line != 9 || !w.Complete {
		t.Fatalf("%v", w.Problems)
	}
}

func TestEditThatLeavesNoTraceIsFound(t *testing.T) {
	t.Parallel()
	b := started(t, "web")
	f := b.disk.files["web.yaml"]
	f.Data = []byte(strings.Replace(string(f.Data), "port: 80", "port: 81", 1)) // same size, same time
	b.pass(rereadEvery*defaultPoll + 2*time.Second)
	if p := b.source.World().Services[0].Ports[0].Port; p != 81 {
		t.Fatalf("port %d", p)
	}
}

// What cannot be read is not taken for what was read before, also when it looks the same the next time.
func TestFileThatGrewTooLargeIsNotTakenForTheOldOne(t *testing.T) {
	t.Parallel()
	b := started(t, "web")
	b.write("web.yaml", service("web")+strings.Repeat("#", maxFileBytes))
	for range 3 {
		b.pass(defaultPoll)
		if b.source.World().Complete {
			t.Fatal("the World is complete without a file that cannot be read")
		}
	}
	wantServices(t, b, "web")
	wantProblem(t, b, "larger than 64 MiB")
}

func TestChangedSaysWhenTheWorldChangedOnly(t *testing.T) {
	t.Parallel()
	b := started(t, "web")
	<-b.source.Changed()
	before := b.source.World()
	b.pass(time.Minute)
	select {
	case <-b.source.Changed():
		t.Fatal("a change though nothing changed")
	default:
	}
	if after := b.source.World(); &after.Services[0] != &before.Services[0] {
		t.Error("the World was made anew though nothing changed")
	}
	b.write("api.yaml", service("api"))
	b.pass(3 * time.Second)
	select {
	case <-b.source.Changed():
	default:
		t.Fatal("a new Service is no change")
	}
}

func TestWorldDoesNotChangeUnderItsReader(t *testing.T) {
	t.Parallel()
	b := started(t, "api", "web")
	w := b.source.World()
	before := w.Clone()
	b.write("web.yaml", service("web", "externalIPs: [203.0.113.12, 203.0.113.11]"))
	b.write("z.yaml", service("z"))
	delete(b.disk.files, "api.yaml")
	b.pass(3 * time.Second)
	if !w.Equal(&before) {
		t.Fatal("a World that was handed out changed")
	}
}

// Everything is there once: Worlds list the very objects of files, whichever file's are in force.
func TestObjectsInForceAreThoseOfTheNewestWorld(t *testing.T) {
	t.Parallel()
	b := started(t, "db", "web")
	in := func(w world.World, file string) bool {
		value := b.source.folder.files[file].good.objects[0].value().(*world.Service)
		return value == find(w, value.ID)
	}
	b.write("web2.yaml", service("web"))
	b.pass(3 * time.Second)
	before := b.source.World()
	if !in(before, "db.yaml") || !in(before, "web.yaml") {
		t.Fatal("objects of files are others than those of the World")
	}

	// The definition of another file is in force while this one is away, and stays so.
	text := b.disk.files["web.yaml"]
	delete(b.disk.files, "web.yaml")
	b.source.scan()
	b.disk.files["web.yaml"] = text
	b.pass(3 * time.Second)
	now := b.source.World()
	if !in(now, "db.yaml") || !in(now, "web2.yaml") {
		t.Error("objects in force are others than those of the newest World")
	}
	if in(now, "web.yaml") {
		t.Error("an object is listed that is not in force")
	}
}

func find(w world.World, id world.ID) *world.Service {
	i := slices.IndexFunc(w.Services, func(s *world.Service) bool { return s.ID == id })
	return w.Services[i]
}

func TestEveryProblemIsLoggedOnce(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("bad.yaml", "a: b: c\n")
	b.pass(time.Minute)
	b.write("web.yaml", service("web"))
	b.pass(time.Minute)
	if n := strings.Count(b.log.String(), "manifest not used as written"); n != 1 {
		t.Fatalf("logged %d times:\n%s", n, b.log.String())
	}
}

func TestTooManyProblemsAreCounted(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("bad.yaml", strings.Repeat("---\na: 1\n", maxProblems+5))
	b.pass(3 * time.Second)
	w := b.source.World()
	if n := len(w.Problems); n != maxProblems+1 || w.Problems[n-1].Why != "5 more problems" {
		t.Fatalf("%d problems, last %v", n, w.Problems[n-1])
	}
}

func TestEndpointsOfBothFormsAreEvidenceWhenTheyGo(t *testing.T) {
	t.Parallel()
	b := started(t, "web")
	b.write("old.yaml", "apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\nsubsets:\n- addresses: [{ip: 10.244.1.7, nodeName: a}]\n  ports: [{port: 80}]\n")
	b.pass(3 * time.Second)
	id := world.ID{Namespace: "default", Name: "web"}
	w := b.source.World()
	if s := w.SlicesOf(id); len(s) != 1 || s[0].Endpoints[0].At().Node != "a" {
		t.Fatalf("%+v", s)
	}
	delete(b.disk.files, "old.yaml")
	b.pass(3 * time.Second)
	w = b.source.World()
	if len(w.EndpointSlices) != 0 || len(w.Deleted) != 1 || w.Deleted[0].Service != id || w.Deleted[0].Kind != world.KindEndpointSlice {
		t.Fatalf("slices %v, deleted %v", w.EndpointSlices, w.Deleted)
	}
}

// What may be carried out by nobody is not taken in without a word: the log says so, too.
func TestPoliciesThatNobodyCarriesOutAreSaidToBeSo(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.write("policy.yaml", "apiVersion: balancing.elf.io/v1beta1\nkind: LocalRedirectPolicy\nmetadata: {name: dns}\nspec:\n"+
		"  frontend: {addressMatcher: {ip: 169.254.0.90, toPorts: [{port: \"53\", protocol: UDP}]}}\n"+
		"  backend: {endpointSelector: {matchLabels: {a: b}}, toPorts: [{port: \"53\", protocol: UDP}]}\n")
	b.pass(time.Minute)
	wantProblem(t, b, "LocalRedirectPolicy dns: it is carried out only where members have `balancingPolicies` and agents `sock`")
	if w := b.source.World(); len(w.LocalRedirectPolicies) != 1 || !strings.Contains(b.log.String(), "carried out only where") {
		t.Errorf("%+v\n%s", w.LocalRedirectPolicies, &b.log)
	}
}
