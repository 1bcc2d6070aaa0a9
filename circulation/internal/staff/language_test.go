package staff_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/drill"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/web/auth"
)

// english finds words that are in sentences of nearly all lengths, and in no German or Spanish one.
var english = regexp.MustCompile(`\b(the|and|is|are|were|of|by|with|not|which|check-outs?|locks?|waited|patrons?)\b`)

// visitIn is a visitor whose browser asks for a language.
func visitIn(t *testing.T, l *library, language string) *visitor {
	t.Helper()
	return visitAs(t, l, auth.None, http.Header{"Accept-Language": {language}})
}

func TestPages_AreInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	lib := &library{
		Admin:   &backend{locks: []schemas.CheckoutLock{held()}},
		figures: busyHour(), uncounted: 2,
		drills: &drills{result: drill.Result{Off: drill.Round{Lent: 17}, On: drill.Round{Lent: 15}}},
		review: admin.LimitReview{LimitCheck: schemas.LimitCheck{OverLimit: []string{annID}}},
		changes: schemas.LockChanges{Changes: []schemas.LockChange{
			{Kind: schemas.ChangeRelease, Lock: &schemas.CheckoutLock{}},
			{After: []byte(`{"checkOutLockFeatureEnabled":true}`)},
		}},
		history: schemas.PastCheckOuts{CheckOuts: []schemas.PastCheckOut{{
			Date: "2026-03-22T13:29:00.000+00:00", Outcome: schemas.OutcomeLockNotAcquired,
			UserBarcode: "A-1", ItemBarcode: "B-1", WaitMs: new(1250), Repeats: 2,
		}}},
	}
	lib.figures.Causes = lib.figures.Causes[1:2]
	lib.figures.Causes[0].Reason = ""
	for _, tt := range []struct {
		language string
		pages    map[string][]string
	}{
		{"de", map[string][]string{
			"/": {
				"Verbuchungssperre", "Die Sperre ist aus", "Einschalten …", "19 von 20 warteten weniger als 1,2 s",
				"2 Exemplarlimits wirken nicht", "Hat eine Sperre zwangsweise freigegeben", "Sperre: ein, davor die Vorgabe",
			},
			"/switch?to=on": {"Die Verbuchungssperre einschalten?", "Grund", "Abbrechen"},
			"/timing":       {"Sperre läuft ab nach", "Empfohlen", "Zeiten speichern", "höchstens 25 s"},
			"/locks":        {"Sperren jetzt", "1 Sperre gehalten", "Gehalten 500 ms 2,5 s", "Freigeben …", "Anhalten"},
			"/check-outs": {
				"Verlauf der Ausleihen", "Belegt, noch einmal versuchen", "22. März 2026", "1,2 s",
				"Das Schreiben wurde 2-mal wiederholt.", "1 Ausleihe.",
			},
			"/contention": {"Wartezeiten", "15 Ausleihen in der letzten Stunde, 12 ausgeliehen und 3 nicht."},
			"/try":        {"Ausleihe prüfen", "Barcode des Exemplars", "Prüfen"},
			"/drill":      {"Ohne die Sperre wurden 17 Exemplare ausgeliehen: 2 mehr, als das Limit erlaubt."},
			"/rules":      {"Ausleihregeln", "Diese Bibliothek hat noch keine Ausleihregeln."},
		}},
		{"es", map[string][]string{
			"/":           {"Cerrojo de préstamo", "El cerrojo está desactivado", "Quién cambió qué"},
			"/timing":     {"El cerrojo vence tras", "Recomendado"},
			"/locks":      {"1 cerrojo retenido", "Liberar …"},
			"/check-outs": {"Ocupado, inténtelo de nuevo", "22 mar"},
			"/contention": {"15 préstamos en la última hora"},
			"/try":        {"Código de barras del ejemplar"},
			"/drill":      {"Con el cerrojo se prestaron 15 ejemplares: los que permite el límite, y ni uno más."},
			"/rules":      {"Reglas de circulación"},
		}},
	} {
		v := visitIn(t, lib, tt.language)
		for path, words := range maps.All(tt.pages) {
			p := v.get(t, "/staff/diku"+path)
			if path == "/drill" {
				p = v.post(t, "/staff/diku"+path, url.Values{})
			}
			p.want(t, http.StatusOK, words...)
			p.has(t, `<html lang="`+tt.language+`">`)
			text := strings.ReplaceAll(strings.ToLower(p.text), "unable to acquire lock", "")
			if found := english.FindAllString(text, -1); len(found) > 0 {
				t.Errorf("%s in %s has the words %q:\n%s", path, tt.language, found, p.text)
			}
		}
	}
}

func TestTimingPage_TakesNumbersOfTheReader(t *testing.T) {
	t.Parallel()
	lib := &library{view: settings.View{Version: "7"}}
	v := visitIn(t, lib, "de")
	form := url.Values{"lockTtlMs": {"2,5 s"}, "retryIntervalsMs": {"0,5 s; 0,5 s"}, "reason": {"Probe"}, "version": {"7"}}
	if p := v.post(t, "/staff/diku/timing", form); p.status != http.StatusSeeOther {
		t.Fatalf("got status %d:\n%s", p.status, p.text)
	}
	if own := lib.changed[0].Own; own.TTL.String() != "2.5s" || len(own.Waits) != 2 || own.Waits[0].String() != "500ms" {
		t.Errorf("saved %v", own)
	}
	form.Set("lockTtlMs", "bald")
	v.post(t, "/staff/diku/timing", form).want(t, http.StatusUnprocessableEntity,
		"„bald“ ist nicht verwendbar. Geben Sie eine Zeit von 250 ms bis 600 s ein")
}

// What the page shows can be saved as it is.
func TestTimingPage_TakesWhatItShows(t *testing.T) {
	t.Parallel()
	fields := regexp.MustCompile(`(?s)name="lockTtlMs" value="([^"]*)".*name="retryIntervalsMs"[^>]*>([^<]*)<`)
	for _, language := range []string{"en", "de", "es"} {
		for _, ttl := range []int{999, 1001, 1234, 1230, 1500, 30_005, 600_000} {
			lib := &library{view: own(true, ttl, 0, 1010, 1234, 10_000)}
			v := visitIn(t, lib, language)
			p := v.get(t, "/staff/diku/timing")
			p.want(t, http.StatusOK)
			p.lacks(t, `id="problems"`, "aria-invalid")
			shown := fields.FindStringSubmatch(p.html)
			if shown == nil {
				t.Fatalf("no fields in:\n%s", p.html)
			}
			form := url.Values{"lockTtlMs": {shown[1]}, "retryIntervalsMs": {shown[2]}, "reason": {"x"}, "version": {"7"}}
			form.Set("accepted", shown[1]+" / "+shown[2])
			if saved := v.post(t, "/staff/diku/timing", form); saved.status != http.StatusSeeOther {
				t.Errorf("%s: %q and %q are answered with %d:\n%s", language, shown[1], shown[2], saved.status, saved.text)
				continue
			}
			want := fmt.Sprint(time.Duration(ttl)*time.Millisecond, " [0s 1.01s 1.234s 10s]")
			if got := summarize(lib.changed[0]); got != want {
				t.Errorf("%s: saved %s, want %s", language, got, want)
			}
		}
	}
}

func TestCSV_HasHeadsInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	v := visitIn(t, &library{figures: busyHour()}, "es")
	if p := v.get(t, "/staff/diku/contention.csv"); !strings.HasPrefix(p.raw, "comienzo,minutos,préstamos,") {
		t.Errorf("got %.80q", p.raw)
	}
	if p := v.get(t, "/staff/diku/check-outs.csv"); !strings.HasPrefix(p.raw, "terminó,usuario,") {
		t.Errorf("got %.80q", p.raw)
	}
}

func TestPages_TranslateRefusals(t *testing.T) {
	t.Parallel()
	lib := &library{
		figures: busyHour(),
		history: schemas.PastCheckOuts{CheckOuts: []schemas.PastCheckOut{{
			Outcome: checkout.OutcomeRefused, Code: "ITEM_NOT_LOANABLE", Reason: "Item is not loanable",
		}}},
	}
	lib.figures.Causes = []schemas.FigureCause{{
		Outcome: checkout.OutcomeRefused, Code: "ITEM_NOT_LOANABLE", Reason: "Item is not loanable", Count: 1,
	}}
	german, english := visitIn(t, lib, "de"), visitIn(t, lib, "en")
	for _, code := range []string{"ITEM_LIMIT_MATERIAL_TYPE", "ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE"} {
		lib.figures.Causes = append(lib.figures.Causes, schemas.FigureCause{
			Outcome: checkout.OutcomeLimitReached, Code: code, Reason: "Patron has reached maximum limit of 3 items", Count: 1,
		})
	}
	german.get(t, "/staff/diku/check-outs").has(t, `<div class="sentence">das Exemplar ist nicht ausleihbar</div>`)
	german.get(t, "/staff/diku/contention").want(t, http.StatusOK, "Abgelehnt: das Exemplar ist nicht ausleihbar",
		"Limit erreicht: die Ausleihrichtlinie erlaubt nicht mehr ITEM_LIMIT_MATERIAL_TYPE",
		"Limit erreicht: die Ausleihrichtlinie erlaubt nicht mehr ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE")
	english.get(t, "/staff/diku/check-outs").lacks(t, "cannot be borrowed")
	english.get(t, "/staff/diku/contention").want(t, http.StatusOK, "Refused: Item is not loanable")
}
