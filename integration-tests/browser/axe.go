package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	axePackage = "axe-core@4.14.1"
	// axeSum is the sha512 of the package, in base64 as registries write it.
	axeSum  = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
	axeFile = "package/axe.min.js"
	// maxAxe bounds the script, which has some 650 kB.
	maxAxe = 8 << 20
)

// axe returns the script of axe-core, from the cache folder or fetched into it.
// Processes may do so at once: the script comes there whole, by a rename.
func (f *finder) axe(ctx context.Context) (string, error) {
	cache, err := f.cacheDir()
	if err != nil {
		return "", err
	}
	name := filepath.Join(cache, axePackage+".min.js")
	if script, err := os.ReadFile(name); err == nil { //nolint:gosec // in our own cache folder
		return string(script), nil
	}
	npm, err := f.system.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("axe-core, which looks for what keeps people from using a page, is fetched with npm: install npm, "+
			"or leave these tests out with BROWSER_TESTS=skip: %w", err)
	}
	tmp, err := os.MkdirTemp(cache, "axe-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	script, err := f.fetchAxe(ctx, npm, tmp)
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", axePackage, err)
	}
	whole := filepath.Join(tmp, "axe.min.js")
	if err := os.WriteFile(whole, script, 0o600); err != nil {
		return "", err
	}
	return string(script), os.Rename(whole, name)
}

// fetchAxe downloads the package into dir, checks it and returns the script in it.
func (f *finder) fetchAxe(ctx context.Context, npm, dir string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	// Run there, or npm would follow the settings of the project it stands in.
	if _, err := f.system.Run(ctx, dir, nil, npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", dir, axePackage); err != nil {
		return nil, err
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil {
		return nil, err
	}
	if len(archives) != 1 {
		return nil, fmt.Errorf("npm pack left %d archives, expected one", len(archives))
	}
	archive, err := os.ReadFile(archives[0])
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(archive)
	if got := base64.StdEncoding.EncodeToString(sum[:]); got != axeSum {
		return nil, fmt.Errorf("the archive is not the expected one: its sha512 is %s, pinned is %s", got, axeSum)
	}
	return takeOut(archive)
}

// takeOut returns the script that the package, a gzipped tar archive, holds.
func takeOut(archive []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the archive holds no %s", axeFile)
		}
		if err != nil {
			return nil, err
		}
		if h.Name != axeFile {
			continue
		}
		if h.Size > maxAxe {
			return nil, fmt.Errorf("%s has %d bytes, more than %d", axeFile, h.Size, maxAxe)
		}
		return io.ReadAll(tr)
	}
}
