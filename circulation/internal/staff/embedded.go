package staff

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

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

//go:embed assets templates
var embedded embed.FS

// asset is a file that pages load. Its path contains a hash of its content, so a
// browser may keep it for ever. No tenant has the name "-".
type asset struct {
	content []byte
	kind    string
	version string
	path    string
}

func readAssets() (map[string]asset, error) {
	entries, err := embedded.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("listing the files of the staff pages: %w", err)
	}
	all := map[string]asset{}
	for _, e := range entries {
		content, err := embedded.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading a file of the staff pages: %w", err)
		}
		sum := sha256.Sum256(content)
		version := hex.EncodeToString(sum[:6])
		all[e.Name()] = asset{
			content: content, kind: mime.TypeByExtension(path.Ext(e.Name())), version: version,
			path: "/staff/-/" + e.Name() + "?v=" + version,
		}
	}
	return all, nil
}

// serveAsset handles GET /staff/-/{file}. Only the version that this instance has may
// be cached: during an upgrade, a page of another instance asks for another version.
func (p *Pages) serveAsset(c echo.Context) error {
	a, ok := p.assets[c.Param("asset")]
	if !ok {
		return fault.New(fault.NotFound, "There is no such file")
	}
	setHeaders(c.Response().Header())
	if web.QueryOf(c).Text("v") == a.version {
		c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return c.Blob(http.StatusOK, a.kind, a.content)
}

// templates are the pages by their file's name, each with the layout.
type templates map[string]*template.Template

// layout is the frame of every page; parts.html has what several pages use.
const layout = "layout.html"

func parseTemplates() (templates, error) {
	shared, err := template.New(layout).Funcs(formats()).ParseFS(embedded, "templates/"+layout, "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("reading the staff pages: %w", err)
	}
	files, err := fs.Glob(embedded, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("listing the staff pages: %w", err)
	}
	all := templates{}
	for _, file := range files {
		name := path.Base(file)
		if name == layout || name == "parts.html" {
			continue
		}
		page, err := shared.Clone()
		if err == nil {
			page, err = page.ParseFS(embedded, file)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the staff page %s: %w", name, err)
		}
		all[name] = page
	}
	return all, nil
}

// render executes one template of a page's file: layout for the page, or a part of it.
func (t templates) render(file, name string, data any) ([]byte, error) {
	page, ok := t[file]
	if !ok {
		return nil, fmt.Errorf("there is no staff page %s", file)
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("rendering the staff page %s: %w", file, err)
	}
	return out.Bytes(), nil
}
