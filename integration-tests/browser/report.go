package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
)

const (
	// maxShown is the largest part of a page's text in a failure, in characters.
	maxShown = 2000
	// pngQuality selects the lossless format in chromedp.
	pngQuality = 100
)

// european makes fields show dates and times as the pages do: day before month, and 24
// hours. The browser's default is its own language, which is American English in Debian's
// package.
const european = `document.documentElement.lang = "en-GB";
for (const field of document.querySelectorAll("input[type=date], input[type=datetime-local], input[type=time]")) {
	const type = field.type;
	field.type = "text"; // redraws it
	field.type = type;
}`

// Screenshot writes a picture of the whole page as name.png to the folder SCREENSHOTS. It
// does nothing if that is empty.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	if name == "" || filepath.Base(name) != name {
		p.t.Fatalf("the screenshot's name is %q, want a file name without folders", name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // part of the documentation
		p.t.Fatal(err)
	}
	p.runVoid("setting the form of dates", chromedp.Evaluate[chromedp.Void](european))
	if err := p.writePicture(filepath.Join(dir, name+".png")); err != nil {
		p.t.Fatalf("screenshot %s: %v", name, err)
	}
}

func (p *Page) writePicture(file string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(pngQuality))
	if err != nil {
		return err
	}
	if png, err = reduceColours(png); err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644) //nolint:gosec // part of the documentation
}

// failTest ends the test with the message, the text of the page and a picture of it.
func (p *Page) failTest(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), p.describePage())
}

func (p *Page) describePage() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	var b strings.Builder
	shown, err := chromedp.Run(ctx, chromedp.Evaluate[struct{ URL, Title, Text string }](`({
		URL: location.href, Title: document.title,
		Text: ((document.querySelector("dialog[open]") || document.querySelector("main") || document.body || {}).innerText) || "",
	})`))
	if err != nil {
		return fmt.Sprintf("the page cannot be read: %v", err)
	}
	text := []rune(foldSpace(shown.Text))
	if len(text) > maxShown {
		text = append(text[:maxShown], '…')
	}
	fmt.Fprintf(&b, "The page: %s %q, status %d\n%s\n", shown.URL, shown.Title, p.Status(), string(text))
	file := filepath.Join(p.t.ArtifactDir(), "page.png")
	if err := p.writePicture(file); err != nil {
		fmt.Fprintf(&b, "no picture of it: %v", err)
	} else {
		fmt.Fprintf(&b, "picture (kept with go test -artifacts): %s", file)
	}
	return b.String()
}

// ExpectError announces an error with this text in the console. The test fails if it does
// not occur.
func (p *Page) ExpectError(text string) { p.events.expectError(text) }

// checkConsole fails the test for errors in the console so far.
func (p *Page) checkConsole() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	// The events of earlier errors arrive before this result. A tab without a result has
	// failed the test already.
	_, _ = chromedp.Run(ctx, chromedp.Evaluate[int]("0"))
	wrong, missing := p.events.compareErrors()
	for _, line := range wrong {
		p.t.Errorf("the page wrote an error to the console: %s", line)
	}
	for _, text := range missing {
		p.t.Errorf("the page wrote no error with %q to the console", text)
	}
}
