package browser

import (
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// point is a place in the window, in CSS pixels.
type point struct{ X, Y float64 }

// hittable scrolls the element into the middle of the window and returns a point
// of it that a mouse can hit, or a word on what is in the way. A box to tick that
// is drawn by its label is hit there.
const hittable = `function () {
	const of = e => e ? "<" + e.tagName.toLowerCase() + (e.id ? " id=" + e.id : "") + ">" : "the edge of the window";
	let way = "nothing: it has no size";
	for (const e of [this, ...(this.labels || [])]) {
		e.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
		const box = [...e.getClientRects()].find(r => r.width > 0 && r.height > 0);
		if (!box) continue;
		const x = box.x + box.width / 2, y = box.y + box.height / 2;
		const top = document.elementFromPoint(x, y);
		if (e.contains(top)) return {X: x, Y: y, Way: ""};
		way = of(top);
	}
	return {X: 0, Y: 0, Way: way};
}`

// aimed makes the element note whether the next click of the mouse lands on it.
// One that lands elsewhere, since the page has moved under the mouse, is kept from
// doing anything. Clicks that the page's own scripts make are none of the mouse.
const aimed = `function () {
	const aim = this.aim = {off: new AbortController(), landed: false};
	addEventListener("click", event => {
		if (!event.isTrusted) return;
		aim.off.abort();
		aim.landed = [this, ...(this.labels || [])].some(e => e.contains(event.target));
		if (aim.landed) return;
		event.stopImmediatePropagation();
		event.preventDefault();
	}, {capture: true, signal: aim.off.signal});
}`

// landed tells whether the click that was aimed at the element landed there.
const landed = `function () {
	this.aim.off.abort();
	return this.aim.landed;
}`

// errNotHere is why a click is repeated: it has done nothing.
var errNotHere = errors.New("the page moved under the mouse")

// Click clicks with the mouse on the only button, link, tab, box to tick or the
// like that has the accessible name, once it is enabled, holds still and nothing
// covers it. It then waits for the page that the click leads to. A click that may
// have done something is never repeated.
func (p *Page) Click(name string) {
	p.t.Helper()
	var last, at point
	var broken error
	p.until(fmt.Sprintf("clicking %q", name), func(ctx context.Context) error {
		e, err := p.one(ctx, clickable(), name)
		if err != nil {
			return err
		}
		last = at
		if at, err = place(ctx, e); err != nil {
			return err
		}
		if last != at {
			return fmt.Errorf("the %s moves", e.Role)
		}
		err = p.hit(ctx, e, at)
		if errors.Is(err, errNotHere) {
			return err
		}
		broken = err
		return nil
	})
	if broken != nil {
		p.fail("clicking %q: %v", name, broken)
	}
	p.settle()
}

// place is where the mouse can hit the element.
func place(ctx context.Context, e Element) (point, error) {
	if e.Disabled {
		return point{}, fmt.Errorf("the %s is disabled", e.Role)
	}
	hit, err := onNode[struct {
		point
		Way string
	}](ctx, e.node, hittable)
	if err == nil && hit.Way != "" {
		err = fmt.Errorf("the %s cannot be hit, in the way is %s", e.Role, hit.Way)
	}
	return hit.point, err
}

// hit returns errNotHere when the click did nothing, and what kept it from being
// made. Without scripts it is not known where a click lands, but then nothing moves
// either.
func (p *Page) hit(ctx context.Context, e Element, at point) error {
	// This handle keeps the element for the question below even if the page has
	// replaced it by then.
	aim, err := object(ctx, e.node)
	if err == nil {
		_, err = onObject[chromedp.Void](ctx, aim, aimed)
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotHere, err) // no button of the mouse was pressed
	}
	if err := chromedp.Do(ctx, chromedp.MouseClickXY(at.X, at.Y)); err != nil {
		return err
	}
	if p.options.noScript {
		return nil
	}
	if hit, err := onObject[bool](ctx, aim, landed); err == nil && !hit { // an error: the click has led to another page
		return errNotHere
	}
	return nil
}
