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

// follow keeps an area up to date while its page is in sight.
function follow(area) {
  const button = area.querySelector('[data-pause]');
  const state = area.querySelector('[data-stream-state]');
  let source = null, paused = false, lost = 0;
  const say = text => { clearTimeout(lost); lost = 0; if (state.textContent !== text) state.textContent = text; };
  const adjust = () => {
    const wanted = !paused && !document.hidden;
    if (wanted === Boolean(source)) return;
    if (!wanted) {
      source.close();
      source = null;
      if (paused) say('Paused');
      return;
    }
    source = new EventSource(area.dataset.stream);
    source.onmessage = event => { show(area, event.data); say('Live'); };
    source.onerror = () => {
      // A stream that ends is opened again by the browser, which is no news.
      if (source.readyState === EventSource.CLOSED) say('Not live: load the page again to see what is new');
      else lost ||= setTimeout(say, 5000, 'Not live: trying again');
    };
  };
  button.addEventListener('click', () => {
    paused = !paused;
    button.textContent = paused ? 'Go on' : 'Pause';
    adjust();
  });
  document.addEventListener('visibilitychange', adjust);
  adjust();
}

// An element with data-copy copies that text.
document.addEventListener('click', async event => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Select it by hand';
  }
  setTimeout(() => { button.textContent = label; }, 2000);
});

// A form with data-sums shows what the server makes of its values while they are typed.
function sums(form) {
  const target = document.getElementById(form.dataset.target);
  let timer = 0, latest = 0;
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++latest;
      const values = new FormData(form);
      for (const name of ['token', 'version', 'reason']) values.delete(name);
      const answer = await fetch(form.dataset.sums + '?' + new URLSearchParams(values)).catch(() => null);
      if (!answer || !answer.ok) return;
      const text = await answer.text();
      if (mine !== latest) return;
      // A page that shrinks would move the button away under a mouse that is on it.
      target.style.minHeight = `${target.offsetHeight}px`;
      target.innerHTML = text;
    }, 200);
  });
}

// Buttons that need this file are hidden without it.
function ready(root) {
  root.querySelectorAll('[data-needs-script]').forEach(element => { element.hidden = false; });
}

ready(document);
document.querySelectorAll('[data-stream]').forEach(follow);
document.querySelectorAll('form[data-sums]').forEach(sums);
