// The pages work without this file. It adds what changes by itself: an element
// with data-stream names where the server tells it, the elements with data-live in
// it are what is told, by key. The server sends them as HTML of its own making.
'use strict';

// sync makes an element show what another one does, without touching what stays
// the same, so that whoever is in it with the keyboard stays there.
function sync(shown, told) {
  if (!told.hasAttribute('data-rows')) {
    if (shown.innerHTML !== told.innerHTML) shown.innerHTML = told.innerHTML;
    return;
  }
  const old = new Map(Array.from(shown.children, row => [row.id, row]));
  let before = null;
  for (const row of Array.from(told.children)) {
    let kept = old.get(row.id);
    old.delete(row.id);
    if (!kept) {
      kept = row;
    } else {
      kept.className = row.className;
      Array.from(row.children).forEach((cell, i) => {
        const was = kept.children[i];
        if (was.innerHTML !== cell.innerHTML && !was.contains(document.activeElement)) was.innerHTML = cell.innerHTML;
      });
    }
    const place = before ? before.nextElementSibling : shown.firstElementChild;
    if (place !== kept) shown.insertBefore(kept, place);
    before = kept;
  }
  for (const gone of old.values()) {
    const had = gone.contains(document.activeElement);
    gone.remove();
    if (had) document.getElementById('main').focus();
  }
}

function show(area, html) {
  const told = new DOMParser().parseFromString(html, 'text/html');
  for (const part of told.querySelectorAll('[data-live]')) {
    const shown = area.querySelector(`[data-live="${part.dataset.live}"]`);
    if (!shown) continue;
    shown.hidden = part.hidden;
    sync(shown, part);
  }
}

function follow(area) {
  const button = area.querySelector('[data-pause]');
  const state = area.querySelector('[data-stream-state]');
  let source = null;
  const say = text => { if (state && state.textContent !== text) state.textContent = text; };
  const start = () => {
    source = new EventSource(area.dataset.stream);
    source.onmessage = event => { show(area, event.data); say('Live'); };
    source.onerror = () => {
      // A stream that ends by itself is opened again by the browser.
      if (source.readyState === EventSource.CLOSED) say('Not live: load the page again to see what is new');
    };
  };
  const pause = () => { source.close(); source = null; say('Paused'); };
  if (button) {
    button.hidden = false;
    button.addEventListener('click', () => {
      if (source) { pause(); button.textContent = 'Go on'; } else { start(); say('Live'); button.textContent = 'Pause'; }
    });
  }
  start();
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
      values.delete('token');
      const answer = await fetch(form.dataset.sums + '?' + new URLSearchParams(values)).catch(() => null);
      if (answer && answer.ok && mine === latest) target.innerHTML = await answer.text();
    }, 200);
  });
}

document.querySelectorAll('[data-stream]').forEach(follow);
document.querySelectorAll('form[data-sums]').forEach(sums);
// Buttons that need this file are hidden without it.
document.querySelectorAll('[data-needs-script]').forEach(element => { element.hidden = false; });
