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

// findHittablePoint scrolls the element into the middle of the window. It returns a point
// of it, or of its label, that a mouse can hit, or the name of what covers it.
const findHittablePoint = `function () {
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

// watchNextClick makes the element record whether the next click of the mouse lands on it.
// It cancels a click that lands elsewhere because the page has moved. It ignores clicks by
// the page's scripts.
const watchNextClick = `function () {
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

// readLanding returns whether the watched click landed on the element.
const readLanding = `function () {
	this.aim.off.abort();
	return this.aim.landed;
}`

// errMissed is the error of a click without effect, which is repeated.
var errMissed = errors.New("the page moved under the mouse")

// Click clicks with the mouse on the only clickable element with the accessible name. It
// waits until the element is enabled, does not move and is not covered. Then it waits for
// the page that the click opens. A click that may have had an effect is never repeated.
func (p *Page) Click(name string) {
	p.t.Helper()
	var last, at point
	var broken error
	p.waitUntil(fmt.Sprintf("clicking %q", name), func(ctx context.Context) error {
		e, err := p.findOne(ctx, clickable(), name)
		if err != nil {
			return err
		}
		last = at
		if at, err = findPoint(ctx, e); err != nil {
			return err
		}
		if last != at {
			return fmt.Errorf("the %s moves", e.Role)
		}
		err = p.clickAt(ctx, e, at)
		if errors.Is(err, errMissed) {
			return err
		}
		broken = err
		return nil
	})
	if broken != nil {
		p.failTest("clicking %q: %v", name, broken)
	}
	p.waitForLoad()
}

// findPoint returns a point of the element that the mouse can hit.
func findPoint(ctx context.Context, e Element) (point, error) {
	if e.Disabled {
		return point{}, fmt.Errorf("the %s is disabled", e.Role)
	}
	hit, err := callOnNode[struct {
		point
		Way string
	}](ctx, e.node, findHittablePoint)
	if err == nil && hit.Way != "" {
		err = fmt.Errorf("the %s cannot be hit, in the way is %s", e.Role, hit.Way)
	}
	return hit.point, err
}

// clickAt clicks on the point. It returns errMissed if the click had no effect. Without
// scripts it cannot check that, but then the page does not move either.
func (p *Page) clickAt(ctx context.Context, e Element, at point) error {
	// The handle keeps the element for readLanding, also if the page replaces it meanwhile.
	aim, err := resolveNode(ctx, e.node)
	if err == nil {
		_, err = callOnObject[chromedp.Void](ctx, aim, watchNextClick)
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errMissed, err) // the mouse button was not pressed
	}
	if err := chromedp.Do(ctx, chromedp.MouseClickXY(at.X, at.Y)); err != nil {
		return err
	}
	if p.options.noScript {
		return nil
	}
	if hit, err := callOnObject[bool](ctx, aim, readLanding); err == nil && !hit { // on an error the click has opened another page
		return errMissed
	}
	return nil
}
