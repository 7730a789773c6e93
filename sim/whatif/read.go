// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"fairlead.io/fairlead/internal/safeyaml"
)

// How much is read. What is more than this is no set of manifests but something else.
const (
	maxFiles     = 2000
	maxFileBytes = 16 << 20
	maxBytes     = 64 << 20
	maxObjects   = 20_000
)

// origin is where an object was written down.
type origin struct {
	file     string
	document int // of the file, from 1
}

func (o origin) String() string { return fmt.Sprintf("%s, document %d", o.file, o.document) }

// problem is one line about what was read: where, which field, why, and what to do.
func (o origin) problem(field, remedy, why string, args ...any) error {
	text := o.String() + ": "
	if field != "" {
		text += field + ": "
	}
	text += fmt.Sprintf(why, args...)
	if remedy != "" {
		text += "; " + remedy
	}
	return errors.New(text)
}

// Read reads the manifests of a folder: files that end in .yaml, .yml or .json, in subfolders too, each with any number
// of documents. Names that begin with a dot are left out. An error is one line: which file, document and field, why,
// and what to do.
func Read(dir string) (*Cluster, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s; name a folder with manifests", dir, reason(err))
	case !info.IsDir():
		return nil, fmt.Errorf("%s: not a folder; name the folder that the file is in", dir)
	}
	return read(os.DirFS(dir), dir)
}

// read is Read of any file system; dir names it.
func read(from fs.FS, dir string) (*Cluster, error) {
	names, err := files(from, dir)
	if err != nil {
		return nil, err
	}
	r := &reader{cluster: &Cluster{dir: dir, unusable: map[string]string{}}, seen: map[ref]origin{}, unused: map[string]int{}}
	total := 0
	for _, name := range names {
		data, err := readFile(from, name)
		if err != nil {
			return nil, err
		}
		if total += len(data); total > maxBytes {
			return nil, fmt.Errorf("%s: more than %d MiB of manifests; keep those of one cluster", dir, maxBytes>>20)
		}
		if err := r.file(name, data); err != nil {
			return nil, err
		}
	}
	r.finish()
	return r.cluster, r.cluster.check()
}

// files lists the manifests of a folder, sorted.
func files(from fs.FS, dir string) (names []string, err error) {
	err = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return fmt.Errorf("%s: %s; make it readable", path.Join(dir, name), reason(err))
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir() || hidden || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name))):
			return nil
		case len(names) == maxFiles:
			return fmt.Errorf("%s: more than %d files; keep those of one cluster", dir, maxFiles)
		}
		names = append(names, name)
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: no manifests (*.yaml, *.yml, *.json) are there; name a folder that has some", dir)
	}
	slices.Sort(names)
	return names, err
}

func readFile(from fs.FS, name string) ([]byte, error) {
	in, err := from.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %s; make it readable", name, reason(err))
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s; make it readable", name, reason(err))
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("%s: larger than %d MiB; split it, or keep what is about Services, nodes and switches", name, maxFileBytes>>20)
	}
	return data, nil
}

func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

// reader takes in files one by one.
type reader struct {
	cluster *Cluster
	seen    map[ref]origin
	unused  map[string]int // by kind
	objects int
}

func (r *reader) file(name string, data []byte) error {
	documents, err := safeyaml.Documents(data)
	if err != nil {
		return origin{name, 1}.problem("", "save it as UTF-8", "%v", err)
	}
	for i, document := range documents {
		at, text := origin{name, i + 1}, document.Text
		if bytes.Contains(text, []byte("{{")) && templated(text) {
			return at.problem("", "render it first, such as with `helm template`, and name the folder of the output", "a template, no manifest")
		}
		raw, err := safeyaml.ToJSON(text)
		if err != nil {
			why, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
			return at.problem("", "mend the YAML; lines are counted from the beginning of the document", "%s", why)
		}
		if err := r.object(at, raw, ""); err != nil {
			return err
		}
	}
	return nil
}

// templated tells whether a document is a template of Helm: a line outside of values begins with {{.
func templated(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		_, value, _ := bytes.Cut(line, []byte(": "))
		if bytes.HasPrefix(line, []byte("{{")) || bytes.HasPrefix(bytes.TrimSpace(value), []byte("{{")) {
			return true
		}
	}
	return false
}
