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
	// axeSum is the SHA-512 of the package in base64.
	axeSum  = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
	axeFile = "package/axe.min.js"
	// maxAxe is the largest accepted script, which has some 650 kB.
	maxAxe = 8 << 20
)

// loadAxe returns the script of axe-core from the cache folder. If it is not there, loadAxe
// fetches it. Concurrent processes see only whole files, because a rename publishes them.
func (f *finder) loadAxe(ctx context.Context) (string, error) {
	cache, err := f.cacheDir()
	if err != nil {
		return "", err
	}
	name := filepath.Join(cache, axePackage+".min.js")
	if script, err := os.ReadFile(name); err == nil { //nolint:gosec // in the cache folder
		return string(script), nil
	}
	npm, err := f.system.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("axe-core, which checks that pages are accessible, is fetched with npm: install npm, "+
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

// fetchAxe downloads the package into dir, compares its checksum and returns its script.
func (f *finder) fetchAxe(ctx context.Context, npm, dir string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	// It runs in dir, because npm reads the settings of the project in its folder.
	if _, err := f.system.Run(ctx, dir, nil, npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", dir, axePackage); err != nil {
		return nil, err
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil {
		return nil, err
	}
	if len(archives) != 1 {
		return nil, fmt.Errorf("npm pack made %d archives, want one", len(archives))
	}
	archive, err := os.ReadFile(archives[0])
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(archive)
	if got := base64.StdEncoding.EncodeToString(sum[:]); got != axeSum {
		return nil, fmt.Errorf("the archive is not the expected one: its sha512 is %s, pinned is %s", got, axeSum)
	}
	return extractScript(archive)
}

// extractScript returns the script from the package, a gzipped tar archive.
func extractScript(archive []byte) ([]byte, error) {
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
