package staff

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"path"
)

//go:embed templates
var templateFiles embed.FS

// templates are the pages by their file's name, each with the layout around it.
type templates map[string]*template.Template

// layout is the frame of every page; parts.html has what several pages use.
const layout = "layout.html"

func parseTemplates() (templates, error) {
	shared, err := template.New(layout).Funcs(formats()).ParseFS(templateFiles, "templates/"+layout, "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("reading the staff pages: %w", err)
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
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
			page, err = page.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the staff page %s: %w", name, err)
		}
		all[name] = page
	}
	return all, nil
}

// execute writes a page with its frame.
func (t templates) execute(w io.Writer, name string, f frame) error {
	return t.part(w, name, layout, f)
}

// part writes one template of a page's file alone.
func (t templates) part(w io.Writer, name, part string, data any) error {
	page, ok := t[name]
	if !ok {
		return fmt.Errorf("there is no staff page %s", name)
	}
	if err := page.ExecuteTemplate(w, part, data); err != nil {
		return fmt.Errorf("making the staff page %s: %w", name, err)
	}
	return nil
}
