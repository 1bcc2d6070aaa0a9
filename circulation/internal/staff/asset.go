package staff

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages load. Its path changes with its content, by version,
// so that a browser may keep it for ever. No tenant is called "-".
type asset struct {
	content []byte
	kind    string
	version string
	path    string
}

func readAssets() (map[string]asset, error) {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("listing the files of the staff pages: %w", err)
	}
	all := map[string]asset{}
	for _, e := range entries {
		content, err := assetFiles.ReadFile("assets/" + e.Name())
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

// serveAsset handles GET /staff/-/{file}. During an upgrade a page of an instance
// with other files may ask for one of those: nobody may keep what it gets instead.
func (p *Pages) serveAsset(c echo.Context) error {
	a, ok := p.assets[c.Param("asset")]
	if !ok {
		return fault.New(fault.NotFound, "There is no such file")
	}
	setHeaders(c.Response().Header())
	if c.QueryParam("v") == a.version {
		c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return c.Blob(http.StatusOK, a.kind, a.content)
}
