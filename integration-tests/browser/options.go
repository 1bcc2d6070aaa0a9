package browser

import (
	"context"
	"encoding/base64"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// Option changes a tab. The default has 1280 × 800 pixels, light colours and scripts, and
// its user prefers reduced motion.
type Option func(*options)

type options struct {
	width, height int
	zoom          float64
	noScript      bool
	dark          bool
	forcedColours bool
	media         string
	headers       network.Headers
	cookies       []network.SetCookieParams
}

// WithoutScript turns scripts off.
func WithoutScript() Option { return func(o *options) { o.noScript = true } }

// Dark makes the user prefer dark colours.
func Dark() Option { return func(o *options) { o.dark = true } }

// ForcedColours makes the system choose all colours, as for high contrast.
func ForcedColours() Option { return func(o *options) { o.forcedColours = true } }

// Size sets the size of the window in pixels.
func Size(width, height int) Option {
	return func(o *options) { o.width, o.height = width, height }
}

// Zoom enlarges pages as a browser's zoom does. At 2, which is 200 %, all is twice as large
// and the window shows half as much.
func Zoom(factor float64) Option { return func(o *options) { o.zoom = factor } }

// Paper lays pages out as they are printed on A4. Hidden elements cannot be clicked then.
func Paper() Option {
	return func(o *options) { o.media, o.width, o.zoom = "print", paperWidth, 1 }
}

// paperWidth is the width of the layout that browsers print on A4. The sheet has 718 pixels
// between margins of a centimetre, and browsers print at three quarters of the size.
const paperWidth = 957

// Header adds a header to each request, as a gateway does.
func Header(name, value string) Option {
	return func(o *options) { o.headers[name] = value }
}

// BasicAuth adds a user's name and password to each request.
func BasicAuth(user, password string) Option {
	return Header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// Cookie gives the browser a cookie of the host of url, as if another page had set it.
func Cookie(url, name, value string) Option {
	return func(o *options) {
		o.cookies = append(o.cookies, network.SetCookieParams{URL: url, Name: name, Value: value})
	}
}

func newOptions(opts []Option) *options {
	o := &options{width: 1280, height: 800, zoom: 1, headers: network.Headers{}}
	for _, set := range opts {
		set(o)
	}
	return o
}

// call is a command of Chromium's protocol.
type call struct {
	method string
	params any
}

// emulate is the action that sets the size, colours and media of a tab.
func (o *options) emulate(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	colours, forced := "light", "none"
	if o.dark {
		colours = "dark"
	}
	if o.forcedColours {
		forced = "active"
	}
	return callAll(ctx, t,
		call{emulation.CommandSetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(float64(o.width) / o.zoom), Height: int64(float64(o.height) / o.zoom), DeviceScaleFactor: o.zoom,
		}},
		call{emulation.CommandSetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: o.media, Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: colours},
			{Name: "forced-colors", Value: forced},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // clicks and pictures need elements that do not move
		}}},
	)
}

// apply is the action that sets all options of a tab.
func (o *options) apply(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	var info struct {
		TargetInfo struct {
			BrowserContextID string `json:"browserContextId"`
		} `json:"targetInfo"`
	}
	if err := t.Call(ctx, target.CommandGetTargetInfo, map[string]any{}, &info); err != nil {
		return chromedp.Void{}, err
	}
	if _, err := o.emulate(ctx, t); err != nil {
		return chromedp.Void{}, err
	}
	calls := []call{
		{network.CommandSetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: o.headers}},
		{emulation.CommandSetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: o.noScript}},
		// Each tab has the focus, so that parallel tests can use the keyboard.
		{emulation.CommandSetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}},
		// A browser with a window lets pages copy to the clipboard without a question.
		{"Browser.grantPermissions", map[string]any{
			"permissions":      []string{"clipboardReadWrite", "clipboardSanitizedWrite"},
			"browserContextId": info.TargetInfo.BrowserContextID,
		}},
	}
	for _, cookie := range o.cookies {
		calls = append(calls, call{network.CommandSetCookie, cookie})
	}
	return callAll(ctx, t, calls...)
}

func callAll(ctx context.Context, t *chromedp.Target, calls ...call) (chromedp.Void, error) {
	for _, c := range calls {
		if err := t.Call(ctx, c.method, c.params, nil); err != nil {
			return chromedp.Void{}, err
		}
	}
	return chromedp.Void{}, nil
}

// With shows the page with other sizes, colours or media while look runs. Its page is not loaded again.
func (p *Page) With(look func(), opts ...Option) {
	p.t.Helper()
	other := *p.options
	for _, set := range opts {
		set(&other)
	}
	p.runVoid("changing how the page is shown", other.emulate)
	defer p.runVoid("showing the page as before", p.options.emulate)
	look()
}
