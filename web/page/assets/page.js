// The pages work without this file. Their elements have its words in the reader's language.
// It adds live updates: an element with data-stream names a stream of the server. Each
// event is HTML with new versions of the elements that have data-live in it, by their keys.
'use strict';

// The next page is in the reader's time zone.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `timezone=${zone}; path=/; max-age=31536000; samesite=lax`;

// sync copies a new version into the element that is shown. It changes only what
// differs, so that the keyboard's focus stays where it is.
function sync(shown, fresh) {
  if (shown.hidden !== fresh.hidden) shown.hidden = fresh.hidden;
  if (fresh.hasAttribute('data-shell')) return; // its content has an update of its own
  if (!fresh.hasAttribute('data-rows')) {
    if (shown.innerHTML !== fresh.innerHTML) shown.innerHTML = fresh.innerHTML;
    return;
  }
  const coming = new Set(Array.from(fresh.children, row => row.id));
  const old = new Map(Array.from(shown.children, row => [row.id, row]));
  // Removes rows before it moves any: a row that is not moved keeps the focus.
  for (const [id, row] of old) if (!coming.has(id)) row.remove();
  let place = shown.firstElementChild;
  for (const row of Array.from(fresh.children)) {
    const kept = old.get(row.id);
    if (kept) syncCells(kept, row);
    if (kept === place && kept) place = place.nextElementSibling;
    else shown.insertBefore(kept || row, place);
  }
}

function syncCells(shown, fresh) {
  Array.from(fresh.children).forEach((cell, i) => {
    const was = shown.children[i], folds = was.querySelectorAll('details');
    cell.querySelectorAll('details').forEach((fold, j) => { fold.open = Boolean(folds[j]?.open); });
    if (was.innerHTML !== cell.innerHTML && !was.contains(document.activeElement)) was.innerHTML = cell.innerHTML;
  });
}

function show(area, html) {
  const fresh = new DOMParser().parseFromString(html, 'text/html');
  ready(fresh);
  const inside = area.contains(document.activeElement);
  for (const part of fresh.querySelectorAll('[data-live]')) {
    const shown = area.querySelector(`[data-live="${part.dataset.live}"]`);
    if (shown) sync(shown, part);
  }
  // If the focused row is gone, the focus stays in this area instead of the page's top.
  const now = document.activeElement;
  if (inside && (!area.contains(now) || now.closest('[hidden]'))) area.focus({ preventScroll: true });
}

// The first and the longest wait, in ms, before a refused stream is opened again.
const firstWait = 10000, longestWait = 160000;

// follow keeps an area up to date while its page is visible.
function follow(area) {
  const button = area.querySelector('[data-pause]');
  const state = area.querySelector('[data-stream-state]');
  const trouble = area.querySelector('[data-live="trouble"]');
  let source = null, paused = false, timer = 0, wait = firstWait;
  const pause = button.textContent;
  const say = text => { if (state.textContent !== text) state.textContent = text; };
  const lost = () => say(state.dataset.isLost);
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    if (source) source.close();
    source = null;
  };
  const start = () => {
    stop();
    if (state.textContent === state.dataset.isPaused) say('');
    source = new EventSource(area.dataset.stream);
    source.onmessage = event => {
      clearTimeout(timer);
      timer = 0;
      wait = firstWait;
      show(area, event.data);
      if (trouble.textContent.trim()) lost();
      else say(state.dataset.isLive);
    };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) {
        // The browser opens an ended stream again by itself.
        timer ||= setTimeout(lost, 5000);
        return;
      }
      // The browser does not open a refused stream again, but the reason may pass.
      stop();
      lost();
      timer = setTimeout(start, wait);
      wait = Math.min(2 * wait, longestWait);
    };
  };
  const adjust = () => {
    stop();
    wait = firstWait;
    if (paused) say(state.dataset.isPaused);
    else if (!document.hidden) start();
  };
  button.addEventListener('click', () => {
    paused = !paused;
    button.textContent = paused ? button.dataset.goOn : pause;
    adjust();
  });
  document.addEventListener('visibilitychange', adjust);
  adjust();
}

// An element with data-copy copies that text. Over plain http browsers forbid this, so
// there it selects the text in the element that describes it.
const copied = new Map(); // buttons that say so for 2 s, with their own label
document.addEventListener('click', async event => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const words = button.closest('[data-copied]').dataset;
  const label = copied.get(button)?.label ?? button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = words.copied;
  } catch {
    const shown = document.getElementById(button.getAttribute('aria-describedby'));
    if (!shown) return; // the row is gone
    shown.textContent = button.dataset.copy;
    button.focus(); // so that an update leaves the cell as it is
    getSelection().selectAllChildren(shown);
    button.textContent = words.selected;
  }
  clearTimeout(copied.get(button)?.timer);
  copied.set(button, { label, timer: setTimeout(() => {
    button.textContent = label;
    copied.delete(button);
  }, 2000) });
});

// A form with data-sums shows the server's sums of its values while they are typed.
function sums(form) {
  const target = document.getElementById(form.dataset.target);
  const apart = ['token', 'version', 'reason', 'accepted']; // not part of the sums
  let timer = 0, latest = 0;
  form.addEventListener('input', event => {
    if (apart.includes(event.target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++latest;
      const values = new FormData(form);
      for (const name of apart) values.delete(name);
      // The header asks for 401 in place of the way to the sign-in.
      const answer = await fetch(form.dataset.sums + '?' + new URLSearchParams(values), {
        headers: { 'X-Requested-With': 'fetch' }, redirect: 'error',
      }).catch(() => null);
      if (!answer || !answer.ok) return;
      const fresh = document.createElement('div');
      fresh.innerHTML = await answer.text();
      // Screen readers must not read equal content again.
      if (mine !== latest || fresh.innerHTML === target.innerHTML) return;
      // Keeps the height, so that the button does not move away under the mouse.
      target.style.minHeight = `${target.offsetHeight}px`;
      target.replaceChildren(...fresh.childNodes);
    }, 200);
  });
}

// forgetDone removes the note of the last change from the address, so that a reload does
// not show it again.
function forgetDone() {
  const address = new URL(location.href);
  if (!address.searchParams.has('done')) return;
  address.searchParams.delete('done');
  history.replaceState(history.state, '', address);
}

// ready shows the buttons that need this file.
function ready(root) {
  root.querySelectorAll('[data-needs-script]').forEach(element => { element.hidden = false; });
}

// fold closes the search on a phone when there are results.
const phone = matchMedia('(max-width: 43.75rem)');
function fold() {
  document.querySelectorAll('details[data-fold]').forEach(search => { search.open = !phone.matches; });
}

forgetDone();
ready(document);
fold();
phone.addEventListener('change', fold);
const current = document.querySelector('.nav a[aria-current]'), tabs = document.querySelector('.nav ul');
if (current) tabs.scrollLeft = current.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
document.querySelectorAll('[data-stream]').forEach(follow);
document.querySelectorAll('form[data-sums]').forEach(sums);
