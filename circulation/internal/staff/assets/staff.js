// The pages work without this file. It adds what changes by itself: an element
// with data-stream names where the server tells it, the elements with data-live in
// it are what is told, by key. The server sends them as HTML of its own making.
'use strict';

// sync makes an element show what another one does, without touching what stays
// the same, so that whoever is in it with the keyboard stays there.
function sync(shown, told) {
  if (shown.hidden !== told.hidden) shown.hidden = told.hidden;
  if (told.hasAttribute('data-shell')) return; // what is in it is told by itself
  if (!told.hasAttribute('data-rows')) {
    if (shown.innerHTML !== told.innerHTML) shown.innerHTML = told.innerHTML;
    return;
  }
  const coming = new Set(Array.from(told.children, row => row.id));
  const old = new Map(Array.from(shown.children, row => [row.id, row]));
  // First what is gone: a row that need not be moved keeps the focus.
  for (const [id, row] of old) if (!coming.has(id)) row.remove();
  let place = shown.firstElementChild;
  for (const row of Array.from(told.children)) {
    const kept = old.get(row.id);
    if (kept) syncCells(kept, row);
    if (kept === place && kept) place = place.nextElementSibling;
    else shown.insertBefore(kept || row, place);
  }
}

function syncCells(shown, told) {
  Array.from(told.children).forEach((cell, i) => {
    const was = shown.children[i];
    if (was.innerHTML !== cell.innerHTML && !was.contains(document.activeElement)) was.innerHTML = cell.innerHTML;
  });
}

function show(area, html) {
  const told = new DOMParser().parseFromString(html, 'text/html');
  ready(told);
  const inside = area.contains(document.activeElement);
  for (const part of told.querySelectorAll('[data-live]')) {
    const shown = area.querySelector(`[data-live="${part.dataset.live}"]`);
    if (shown) sync(shown, part);
  }
  // Whoever was in a row that is gone goes on from here, not from the page's top.
  const now = document.activeElement;
  if (inside && (!area.contains(now) || now.closest('[hidden]'))) area.focus({ preventScroll: true });
}

// How long to wait before a stream that was refused is asked for again, in ms: at
// first, and at most.
const firstWait = 10000, longestWait = 160000;

// follow keeps an area up to date while its page is in sight.
function follow(area) {
  const button = area.querySelector('[data-pause]');
  const state = area.querySelector('[data-stream-state]');
  const trouble = area.querySelector('[data-live="trouble"]');
  let source = null, paused = false, timer = 0, wait = firstWait;
  const say = text => { if (state.textContent !== text) state.textContent = text; };
  const lost = () => say('Not live: trying again');
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    if (source) source.close();
    source = null;
  };
  const start = () => {
    stop();
    if (state.textContent === 'Paused') say('');
    source = new EventSource(area.dataset.stream);
    source.onmessage = event => {
      clearTimeout(timer);
      timer = 0;
      wait = firstWait;
      show(area, event.data);
      if (trouble.textContent.trim()) lost();
      else say('Live');
    };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) {
        // A stream that ends is opened again by the browser, which is no news.
        timer ||= setTimeout(lost, 5000);
        return;
      }
      // The server refused it: there the browser gives up, but the reason may pass.
      stop();
      lost();
      timer = setTimeout(start, wait);
      wait = Math.min(2 * wait, longestWait);
    };
  };
  const adjust = () => {
    stop();
    wait = firstWait;
    if (paused) say('Paused');
    else if (!document.hidden) start();
  };
  button.addEventListener('click', () => {
    paused = !paused;
    button.textContent = paused ? 'Go on' : 'Pause';
    adjust();
  });
  document.addEventListener('visibilitychange', adjust);
  adjust();
}

// An element with data-copy copies that text. Where the browser lets no page do so,
// as over plain http, it selects the text in what describes it.
const copied = new Map(); // buttons that say so for a while, with their own label
document.addEventListener('click', async event => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const label = copied.get(button)?.label ?? button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  } catch {
    const shown = document.getElementById(button.getAttribute('aria-describedby'));
    if (!shown) return; // the row is gone meanwhile
    shown.textContent = button.dataset.copy;
    button.focus(); // so that what is told by the server leaves the cell alone
    getSelection().selectAllChildren(shown);
    button.textContent = 'Selected, copy it by hand';
  }
  clearTimeout(copied.get(button)?.timer);
  copied.set(button, { label, timer: setTimeout(() => {
    button.textContent = label;
    copied.delete(button);
  }, 2000) });
});

// A form with data-sums shows what the server makes of its values while they are typed.
function sums(form) {
  const target = document.getElementById(form.dataset.target);
  const apart = ['token', 'version', 'reason']; // what nothing is made of
  let timer = 0, latest = 0;
  form.addEventListener('input', event => {
    if (apart.includes(event.target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++latest;
      const values = new FormData(form);
      for (const name of apart) values.delete(name);
      const answer = await fetch(form.dataset.sums + '?' + new URLSearchParams(values)).catch(() => null);
      if (!answer || !answer.ok) return;
      const told = document.createElement('div');
      told.innerHTML = await answer.text();
      // What stays the same must not be read out again.
      if (mine !== latest || told.innerHTML === target.innerHTML) return;
      // A page that shrinks would move the button away under a mouse that is on it.
      target.style.minHeight = `${target.offsetHeight}px`;
      target.replaceChildren(...told.childNodes);
    }, 200);
  });
}

// What was done a moment ago is no news when the page is loaded again.
function forgetDone() {
  const address = new URL(location.href);
  if (!address.searchParams.has('done')) return;
  address.searchParams.delete('done');
  history.replaceState(history.state, '', address);
}

// Buttons that need this file are hidden without it.
function ready(root) {
  root.querySelectorAll('[data-needs-script]').forEach(element => { element.hidden = false; });
}

forgetDone();
ready(document);
document.querySelectorAll('[data-stream]').forEach(follow);
document.querySelectorAll('form[data-sums]').forEach(sums);
