package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

//go:embed assets templates
var shared embed.FS

// Files are the files that pages load. Their paths contain a hash of their content, so a browser
// may keep them for ever.
type Files map[string]file

type file struct {
	content   []byte
	mediaType string
	version   string
	path      string
}

// mediaTypes are those of the files by their extension. The tables of the host may differ, and take
// memory.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// ReadFiles reads the folder assets. prefix is where its files are served.
func ReadFiles(prefix string) (Files, error) {
	all := Files{}
	entries, err := shared.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("listing the files of the pages: %w", err)
	}
	for _, e := range entries {
		content, err := shared.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading a file of the pages: %w", err)
		}
		mediaType, ok := mediaTypes[path.Ext(e.Name())]
		if !ok {
			return nil, fmt.Errorf("the file %s of the pages has no media type", e.Name())
		}
		sum := sha256.Sum256(content)
		version := hex.EncodeToString(sum[:6])
		all[e.Name()] = file{
			content: content, mediaType: mediaType, version: version,
			path: prefix + e.Name() + "?v=" + version,
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
	return c.Blob(http.StatusOK, a.mediaType, a.content)
}

// NewFrame returns the frame of a page for its visitor, with the files.
func (f Files) NewFrame(c echo.Context) Frame {
	return Frame{
		Language: Language(c), Languages: linkLanguages(c), Script: RelativePath(c, f.Path("page.js")),
		Style: RelativePath(c, f.Path("page.css")), Icon: RelativePath(c, f.Path("page.svg")),
	}
}

// RelativePath is the path from a request's address to a path of this service. So links hold behind a
// proxy that puts a prefix before all paths. What a stream sends belongs to its page.
func RelativePath(c echo.Context, path string) string {
	from := c.Request().URL.EscapedPath()
	if strings.HasSuffix(c.Path(), "/live") {
		from = strings.TrimSuffix(from, "/live")
	}
	return strings.Repeat("../", max(strings.Count(from, "/")-1, 0)) + strings.TrimPrefix(path, "/")
}
