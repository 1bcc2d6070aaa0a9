package auth_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A proxy that puts a prefix before the paths needs to rewrite neither redirects nor cookies.
func TestPages_SignInBehindAPrefix(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.StripPrefix("/library", newSite(byPassword()).start(t)))
	t.Cleanup(proxy.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	send := func(method, path string, form url.Values) (address, body string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, proxy.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Request.URL.RequestURI(), string(text)
	}
	form, body := send(http.MethodGet, "/library/desk/diku/list?x=1", nil)
	token := tokenInput.FindStringSubmatch(body)
	if token == nil {
		t.Fatalf("%s is no form: %s", form, body)
	}
	address, body := send(http.MethodPost, form, url.Values{
		"token": {token[1]}, "name": {"Ann"}, "password": {password}, "to": {"/desk/diku/list?x=1"},
	})
	if address != "/library/desk/diku/list?x=1" || body != "Ann sees and changes" {
		t.Errorf("the sign-in leads to %s: %s", address, body)
	}
	address, _ = send(http.MethodPost, "/library/desk/diku/sign-out",
		url.Values{"token": {tokenOf(jar, proxy.URL)}})
	if address != "/library/desk/diku/signed-out" {
		t.Errorf("the sign-out leads to %s", address)
	}
}

func tokenOf(jar http.CookieJar, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	for _, c := range jar.Cookies(u) {
		if c.Name == "staff_token" {
			return c.Value
		}
	}
	return ""
}
