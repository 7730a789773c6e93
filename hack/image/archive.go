// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// image is what one architecture runs.
type image struct {
	Architecture string            // by Go's name, which OCI shares
	Files        map[string][]byte // programs, by path without a leading slash
}

// Media types of OCI's image specification v1.1.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	keyRef       = "org.opencontainers.image.ref.name"
	keyName      = "io.containerd.image.name"
)

// epoch is the time of everything in the image.
var epoch = time.Unix(0, 0).UTC()

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	Created time.Time `json:"created"`
	platform
	Config struct {
		Entrypoint []string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// blobs are the content of an archive, by digest.
type blobs map[string][]byte

func (b blobs) add(mediaType string, content []byte) descriptor {
	digest := digestOf(content)
	b[digest] = content
	return descriptor{MediaType: mediaType, Digest: digest, Size: len(content)}
}

func (b blobs) addJSON(mediaType string, v any) (descriptor, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	return b.add(mediaType, text), nil
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func pathOf(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

// pack makes an OCI image layout of images of one full name (docker.io/library/fairlead:latest), as a tar archive, and gives the digest of their index. The
// archive also has the manifest.json by which `docker load` finds the first of them.
func pack(name string, images []image) (archive []byte, digest string, err error) {
	content := blobs{}
	all := index{SchemaVersion: 2, MediaType: typeIndex}
	var docker []map[string]any
	for _, i := range images {
		m, err := content.addImage(i)
		if err != nil {
			return nil, "", err
		}
		d, err := content.addJSON(typeManifest, m)
		if err != nil {
			return nil, "", err
		}
		d.Platform = &platform{Architecture: i.Architecture, OS: "linux"}
		all.Manifests = append(all.Manifests, d)
		if docker == nil {
			docker = []map[string]any{{
				"Config": pathOf(m.Config.Digest), "RepoTags": []string{name}, "Layers": []string{pathOf(m.Layers[0].Digest)},
			}}
		}
	}
	root, err := content.addJSON(typeIndex, all)
	if err != nil {
		return nil, "", err
	}
	tag := name[strings.LastIndex(name, ":")+1:]
	root.Annotations = map[string]string{keyRef: tag, keyName: name}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	for path, v := range map[string]any{
		"index.json": index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{root}}, "manifest.json": docker,
	} {
		if files[path], err = json.Marshal(v); err != nil {
			return nil, "", err
		}
	}
	for digest, blob := range content {
		files[pathOf(digest)] = blob
	}
	var out bytes.Buffer
	if err := writeTar(&out, files, 0o644); err != nil {
		return nil, "", err
	}
	return out.Bytes(), root.Digest, nil
}

// addImage adds layer and configuration of one architecture.
func (b blobs) addImage(i image) (manifest, error) {
	var layer, zipped bytes.Buffer
	if err := writeTar(&layer, i.Files, 0o755); err != nil {
		return manifest{}, err
	}
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(layer.Bytes()); err != nil {
		return manifest{}, err
	}
	if err := z.Close(); err != nil {
		return manifest{}, err
	}
	c := config{Created: epoch, platform: platform{i.Architecture, "linux"}}
	c.Config.Entrypoint = []string{"/bin/fairlead"}
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{digestOf(layer.Bytes())}
	conf, err := b.addJSON(typeConfig, c)
	if err != nil {
		return manifest{}, err
	}
	return manifest{SchemaVersion: 2, MediaType: typeManifest, Config: conf, Layers: []descriptor{b.add(typeLayer, zipped.Bytes())}}, nil
}

// writeTar writes files and their folders in order, with nothing in the headers that differs between machines.
func writeTar(w io.Writer, files map[string][]byte, mode int64) error {
	t := tar.NewWriter(w)
	folders := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var missing []string
		for d := path.Dir(name); !folders[d]; d = path.Dir(d) {
			folders[d] = true
			missing = append(missing, d)
		}
		for _, d := range slices.Backward(missing) {
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR}); err != nil {
				return err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(files[name])), ModTime: epoch, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(files[name]); err != nil {
			return err
		}
	}
	return t.Close()
}
