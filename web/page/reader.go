package page

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/web/texts"
)

// Reader is the person that a page is written for.
type Reader struct {
	Language string         // one of texts.Languages, or texts.Pseudo
	Zone     *time.Location // of the times on the page
}

// NewReader returns the person that an answer is written for.
func NewReader(c echo.Context) Reader { return Reader{Language: Language(c), Zone: Zone(c)} }

const (
	languageParameter = "language"
	languageCookie    = "language"
	zoneCookie        = "timezone" // page.js sets it
)

// Language returns the visitor's language: the query parameter language, the choice before, the
// browser's languages, English.
func Language(c echo.Context) string {
	for _, chosen := range []string{c.QueryParam(languageParameter), ReadCookie(c, languageCookie)} {
		if texts.IsLanguage(chosen) {
			return chosen
		}
	}
	return texts.MatchLanguage(c.Request().Header.Get("Accept-Language"))
}

// keepLanguage keeps the language of the query parameter for the visitor's next pages.
func keepLanguage(c echo.Context) {
	if chosen := c.QueryParam(languageParameter); texts.IsLanguage(chosen) {
		SetCookie(c, languageCookie, chosen, 365*24*time.Hour)
	}
}

// Zone returns the visitor's time zone, as the browser has said it in a cookie. Without one it is
// the service's (the variable TZ).
func Zone(c echo.Context) *time.Location {
	if cookie, err := c.Cookie(zoneCookie); err == nil && cookie.Value != "" {
		if zone, err := time.LoadLocation(cookie.Value); err == nil {
			return zone
		}
	}
	return time.Local //nolint:gosmopolitan // the operator sets TZ
}

// linkLanguages returns the menu of languages: each links to this page.
func linkLanguages(c echo.Context) []Link {
	q := c.Request().URL.Query()
	var links []Link
	for _, l := range texts.Languages {
		q.Set(languageParameter, l.Tag)
		links = append(links, Link{Path: "?" + q.Encode(), Text: texts.Code(l.Name), Language: l.Tag, Current: l.Tag == Language(c)})
	}
	return links
}

// Say returns a text in the reader's language.
func (r Reader) Say(t texts.Text) string { return texts.Delivered().Say(t, r.Language) }

// say is the template function: a texts.Text, or a code with the names and values of its
// placeholders.
func (r Reader) say(what any, pairs ...any) (string, error) {
	t, err := r.makeText(what, pairs)
	return r.Say(t), err
}

func (r Reader) makeText(what any, pairs []any) (texts.Text, error) {
	t := texts.Text{}
	switch what := what.(type) {
	case texts.Text:
		t = what
	case texts.Code:
		t.Code = what
	case string:
		t.Code = texts.Code(what)
	default:
		return t, fmt.Errorf("%T is no text", what)
	}
	if len(pairs) == 0 {
		return t, nil
	}
	if len(pairs)%2 != 0 {
		return t, fmt.Errorf("the text %s has a placeholder without a value", t.Code)
	}
	values := texts.Values{}
	maps.Copy(values, t.Values)
	for i := 0; i < len(pairs); i += 2 {
		values[fmt.Sprint(pairs[i])] = r.write(pairs[i+1])
	}
	t.Values = values
	return t, nil
}

// write returns the value of a placeholder.
func (r Reader) write(value any) string {
	switch value := value.(type) {
	case texts.Text:
		return r.Say(value)
	case texts.Code:
		return r.Say(texts.Text{Code: value})
	case Moment:
		return value.Text
	case time.Time:
		return r.When(value).Text
	}
	return fmt.Sprint(value)
}

// linked is a text whose part in square brackets leads to an address.
func (r Reader) linked(what any, path string, pairs ...any) (template.HTML, error) {
	t, err := r.makeText(what, pairs)
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(path); err != nil || u.Scheme != "" {
		return "", fmt.Errorf("the text %s links to %q, which is no page", t.Code, path)
	}
	// Brackets of values make no link.
	const opening, closing = "\ue000", "\ue001"
	values := texts.Values{}
	for name, value := range t.Values {
		values[name] = strings.NewReplacer("[", opening, "]", closing).Replace(value)
	}
	text := template.HTMLEscapeString(r.Say(texts.Text{Code: t.Code, Values: values}))
	text = strings.NewReplacer("[", `<a href="`+template.HTMLEscapeString(path)+`">`, "]", "</a>").Replace(text)
	return template.HTML(strings.NewReplacer(opening, "[", closing, "]").Replace(text)), nil //nolint:gosec // escaped above
}
