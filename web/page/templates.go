package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/config"
)

// Templates are the pages by their file's name, each with the layout. They are safe for concurrent
// use.
type Templates struct {
	pages map[string]*pageCopies
}

// pageCopies are a page's template, which is never executed because html/template copies no others,
// and copies of it that are not in use.
type pageCopies struct {
	parse func() (*template.Template, error) // once, at the page's first use
	idle  sync.Pool                          // of *boundPage
}

// boundPage is a copy of a page's template. Its functions write for the reader, who changes from one
// use to the next.
type boundPage struct {
	template *template.Template
	reader   Reader
}

// Layout is the frame of every page.
const Layout = "layout.html"

// ParseTemplates reads the folder templates of a service. Its pages use what the shared
// files define: "mark", "time", "reason", and error.html for errors. A file parts.html has
// what several of its pages use.
//
// The functions say, linked, when, clock, ms, felt and number write for the reader of Render.
func ParseTemplates(own fs.FS, formats template.FuncMap) (*Templates, error) {
	all := &Templates{pages: map[string]*pageCopies{}}
	base := template.New(Layout).Funcs((&boundPage{}).functions()).Funcs(formats)
	base, err := base.ParseFS(shared, "templates/"+Layout, "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	if parts, _ := fs.Glob(own, "templates/parts.html"); len(parts) > 0 {
		if base, err = base.ParseFS(own, parts...); err != nil {
			return nil, fmt.Errorf("reading the pages: %w", err)
		}
	}
	all.add(base, shared)
	all.add(base, own)
	return all, nil
}

// functions are those that write for a reader.
func (b *boundPage) functions() template.FuncMap {
	return template.FuncMap{
		"build": config.ReadBuild,
		"say":   func(what any, pairs ...any) (string, error) { return b.reader.say(what, pairs...) },
		"linked": func(what any, path string, pairs ...any) (template.HTML, error) {
			return b.reader.linked(what, path, pairs...)
		},
		"when":   func(date any) (Moment, error) { return b.reader.when(date) },
		"clock":  func(date any) (string, error) { return b.reader.clock(date) },
		"ms":     func(n any) (string, error) { return b.reader.ms(n) },
		"felt":   func(d time.Duration) string { return b.reader.Felt(d) },
		"number": func(n any) string { return b.reader.Number(n, 1) },
	}
}

// add adds the pages of a folder templates, which are parsed on top of base.
func (t *Templates) add(base *template.Template, source fs.FS) {
	files, _ := fs.Glob(source, "templates/*.html") // its only error is of a wrong pattern
	for _, file := range files {
		t.pages[path.Base(file)] = &pageCopies{parse: sync.OnceValues(func() (*template.Template, error) {
			return template.Must(base.Clone()).ParseFS(source, file) // nothing has executed base
		})}
	}
}

// take returns a copy that is not in use, or makes one.
func (p *pageCopies) take() (*boundPage, error) {
	if b, idle := p.idle.Get().(*boundPage); idle {
		return b, nil
	}
	source, err := p.parse()
	if err != nil {
		return nil, err
	}
	b := &boundPage{template: template.Must(source.Clone())} // nothing has executed the source
	b.template.Funcs(b.functions())
	return b, nil
}

// Show answers with a page. It renders the whole page before it sends the status.
func (t *Templates) Show(c echo.Context, status int, file string, f Frame) error {
	content, err := t.Render(NewReader(c), file, Layout, f)
	if err != nil {
		return err
	}
	return c.HTMLBlob(status, content)
}

// Render executes one template of a page's file: Layout for the page, or a part of it.
func (t *Templates) Render(r Reader, file, name string, data any) ([]byte, error) {
	copies, ok := t.pages[file]
	if !ok {
		return nil, fmt.Errorf("there is no page %s", file)
	}
	page, err := copies.take()
	if err != nil {
		return nil, fmt.Errorf("reading the page %s: %w", file, err)
	}
	defer copies.idle.Put(page)
	page.reader = r
	var out bytes.Buffer
	if err := page.template.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("rendering the page %s: %w", file, err)
	}
	return out.Bytes(), nil
}
