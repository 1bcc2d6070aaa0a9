package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"github.com/labstack/echo/v4"

	"checkoutlock/config"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

//go:embed assets templates
var shared embed.FS

// Files are the files that pages load: page.css and page.svg, and a service's own. Their
// paths contain a hash of their content, so a browser may keep them for ever.
type Files map[string]file

type file struct {
	content []byte
	kind    string
	version string
	path    string
}

// ReadFiles reads the folder assets of each of the services' own file systems. prefix is
// where they are served.
func ReadFiles(prefix string, own ...fs.FS) (Files, error) {
	all := Files{}
	for _, source := range append(own, shared) {
		entries, err := fs.ReadDir(source, "assets")
		if err != nil {
			return nil, fmt.Errorf("listing the files of the pages: %w", err)
		}
		for _, e := range entries {
			content, err := fs.ReadFile(source, "assets/"+e.Name())
			if err != nil {
				return nil, fmt.Errorf("reading a file of the pages: %w", err)
			}
			sum := sha256.Sum256(content)
			version := hex.EncodeToString(sum[:6])
			all[e.Name()] = file{
				content: content, kind: mime.TypeByExtension(path.Ext(e.Name())), version: version,
				path: prefix + e.Name() + "?v=" + version,
			}
		}
	}
	return all, nil
}

// Path returns the path of a file, with its version.
func (f Files) Path(name string) string { return f[name].path }

// Serve handles GET for the file in the path's parameter asset. Only the version that this
// instance has may be cached: during an upgrade, a page of another instance asks for
// another version.
func (f Files) Serve(c echo.Context) error {
	a, ok := f[c.Param("asset")]
	if !ok {
		return fault.New(fault.NotFound, "There is no such file")
	}
	SetHeaders(c.Response().Header())
	if web.QueryOf(c).Text("v") == a.version {
		c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return c.Blob(http.StatusOK, a.kind, a.content)
}

// Templates are the pages by their file's name, each with the layout.
type Templates map[string]*template.Template

// Layout is the frame of every page.
const Layout = "layout.html"

// ParseTemplates reads the folder templates of a service. Its pages use what the shared
// files define: "mark", "time", "reason", and error.html for errors. A file parts.html has
// what several of its pages use.
func ParseTemplates(own fs.FS, formats template.FuncMap) (Templates, error) {
	base := template.New(Layout).Funcs(template.FuncMap{"when": FormatTime, "build": config.ReadBuild}).Funcs(formats)
	base, err := base.ParseFS(shared, "templates/"+Layout, "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	if parts, err := fs.Glob(own, "templates/parts.html"); err == nil && len(parts) > 0 {
		if base, err = base.ParseFS(own, parts...); err != nil {
			return nil, fmt.Errorf("reading the pages: %w", err)
		}
	}
	all := Templates{}
	for _, source := range []fs.FS{shared, own} {
		if err := all.add(base, source); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add parses each page of a folder templates on top of base.
func (t Templates) add(base *template.Template, source fs.FS) error {
	files, err := fs.Glob(source, "templates/*.html")
	if err != nil {
		return fmt.Errorf("listing the pages: %w", err)
	}
	for _, file := range files {
		name := path.Base(file)
		if name == Layout || name == "parts.html" {
			continue
		}
		page, err := base.Clone()
		if err == nil {
			page, err = page.ParseFS(source, file)
		}
		if err != nil {
			return fmt.Errorf("reading the page %s: %w", name, err)
		}
		t[name] = page
	}
	return nil
}

// Render executes one template of a page's file: Layout for the page, or a part of it.
func (t Templates) Render(file, name string, data any) ([]byte, error) {
	page, ok := t[file]
	if !ok {
		return nil, fmt.Errorf("there is no page %s", file)
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("rendering the page %s: %w", file, err)
	}
	return out.Bytes(), nil
}
