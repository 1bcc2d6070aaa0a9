package browser

import (
	"context"
	"encoding/base64"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// Option says how a tab differs from one of 1280 × 800 pixels, in light colours,
// on a screen, with scripts, whose user prefers reduced motion.
type Option func(*options)

type options struct {
	width, height int
	zoom          float64
	noScript      bool
	dark          bool
	media         string
	headers       network.Headers
}

// WithoutScript turns scripts off, as some people and some networks do.
func WithoutScript() Option { return func(o *options) { o.noScript = true } }

// Dark makes the user one who prefers dark colours.
func Dark() Option { return func(o *options) { o.dark = true } }

// Size is the size of the window in pixels.
func Size(width, height int) Option {
	return func(o *options) { o.width, o.height = width, height }
}

// Zoom enlarges pages as a browser's zoom does: at 2, which is 200 %, everything
// is twice as large and the window has room for half of it.
func Zoom(factor float64) Option { return func(o *options) { o.zoom = factor } }

// Header sends a header with each request, as a gateway in between would.
func Header(name, value string) Option {
	return func(o *options) { o.headers[name] = value }
}

// BasicAuth sends a user's name and password with each request.
func BasicAuth(user, password string) Option {
	return Header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func newOptions(opts []Option) *options {
	o := &options{width: 1280, height: 800, zoom: 1, headers: network.Headers{}}
	for _, set := range opts {
		set(o)
	}
	return o
}

// apply is the action that gives a tab its options.
func (o *options) apply(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	colours := "light"
	if o.dark {
		colours = "dark"
	}
	for _, c := range []struct {
		method string
		params any
	}{
		{emulation.CommandSetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(float64(o.width) / o.zoom), Height: int64(float64(o.height) / o.zoom), DeviceScaleFactor: o.zoom,
		}},
		{emulation.CommandSetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: o.media, Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: colours},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // a moving thing is hard to hit and to picture
		}}},
		{network.CommandSetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: o.headers}},
		{emulation.CommandSetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: o.noScript}},
		// Each tab believes that it is the one in front, so that tests do not take
		// the keyboard from one another.
		{emulation.CommandSetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}},
	} {
		if err := t.Call(ctx, c.method, c.params, nil); err != nil {
			return chromedp.Void{}, err
		}
	}
	return chromedp.Void{}, nil
}

// paperWidth is what browsers lay pages out for that they print on A4: the sheet has
// 718 pixels between margins of a centimetre, and what is printed is a quarter
// smaller than on the screen. Wider pages become smaller still.
const paperWidth = 957

// OnPaper shows the page as it is printed while look looks at it. What is hidden
// then cannot be clicked.
func (p *Page) OnPaper(look func()) {
	p.t.Helper()
	printed := *p.options
	printed.media, printed.width, printed.zoom = "print", paperWidth, 1
	p.do("printing", printed.apply)
	defer p.do("back to the screen", p.options.apply)
	look()
}
