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
	// maxShown bounds the part of a page's text that a failure shows.
	maxShown = 2000
	// pngQuality is what chromedp calls the lossless format.
	pngQuality = 100
)

// european makes fields write dates and times as the texts of the pages do: day
// before month, and 24 hours. The browser would follow its own language, and
// Debian's package has but American English.
const european = `document.documentElement.lang = "en-GB";
for (const field of document.querySelectorAll("input[type=date], input[type=datetime-local], input[type=time]")) {
	const type = field.type;
	field.type = "text"; // drawn anew
	field.type = type;
}`

// Screenshot writes a picture of the whole page as name.png to the folder that
// SCREENSHOTS names, and does nothing when it names none.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	if name == "" || filepath.Base(name) != name {
		p.t.Fatalf("%q is no name for a screenshot: plain file names are", name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // part of the documentation
		p.t.Fatal(err)
	}
	p.do("writing dates day by day", chromedp.Evaluate[chromedp.Void](european))
	if err := p.picture(filepath.Join(dir, name+".png")); err != nil {
		p.t.Fatalf("screenshot %s: %v", name, err)
	}
}

func (p *Page) picture(file string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(pngQuality))
	if err != nil {
		return err
	}
	if png, err = fewColours(png); err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644) //nolint:gosec // part of the documentation
}

// fail ends the test with what happened, what the page shows, and a picture of it.
func (p *Page) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), p.describe())
}

func (p *Page) describe() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	var b strings.Builder
	shown, err := chromedp.Run(ctx, chromedp.Evaluate[struct{ URL, Title, Text string }](`({
		URL: location.href, Title: document.title,
		Text: ((document.querySelector("dialog[open]") || document.querySelector("main") || document.body || {}).innerText) || "",
	})`))
	if err != nil {
		return fmt.Sprintf("What the page shows cannot be told: %v", err)
	}
	text := []rune(plain(shown.Text))
	if len(text) > maxShown {
		text = append(text[:maxShown], '…')
	}
	fmt.Fprintf(&b, "The page: %s %q, status %d\n%s\n", shown.URL, shown.Title, p.Status(), string(text))
	file := filepath.Join(p.t.ArtifactDir(), "page.png")
	if err := p.picture(file); err != nil {
		fmt.Fprintf(&b, "no picture of it: %v", err)
	} else {
		fmt.Fprintf(&b, "picture (kept with go test -artifacts): %s", file)
	}
	return b.String()
}

// ExpectError says that the page will write an error with this text to the
// console. The test fails when it does not.
func (p *Page) ExpectError(text string) { p.events.expect(text) }

// checkConsole fails the test for errors that the page has written so far.
func (p *Page) checkConsole() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	// What was written before this answer comes has been told by then. A tab that
	// does not answer has failed the test already.
	_, _ = chromedp.Run(ctx, chromedp.Evaluate[int]("0"))
	wrong, missing := p.events.unexpected()
	for _, line := range wrong {
		p.t.Errorf("the page wrote an error to the console: %s", line)
	}
	for _, text := range missing {
		p.t.Errorf("the page wrote no error with %q to the console", text)
	}
}
