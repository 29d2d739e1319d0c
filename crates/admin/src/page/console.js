// Keeps the page's figures new: parts of the page are asked for again and put in the place of the old ones. Ticks, focus and scroll stay.
(() => {
  const body = document.body, base = body.dataset.here, top = document.getElementById('top');
  const state = document.getElementById('live'), filter = document.getElementById('filter');
  const rows = [...document.querySelectorAll('tr[data-n]')], seen = new Set();
  let paused = false, wait = 2000, run = body.dataset.run, last = 0;

  const fetchPart = async part => {
    const answer = await fetch(base + part, { cache: 'no-store', credentials: 'same-origin' });
    if (!answer.ok) throw new Error(answer.status);
    const box = document.createElement('template');
    box.innerHTML = await answer.text();
    return box.content;
  };

  const renewTop = async () => {
    const part = await fetchPart(';part=top'), now = part.firstElementChild;
    if (now.dataset.run !== run) {
      run = now.dataset.run;
      document.getElementById('again').hidden = false;
    }
    document.title = now.dataset.title;
    top.replaceChildren(...now.childNodes);
  };

  const watch = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? 'add' : 'delete'](+target.dataset.n);
  });
  rows.forEach(row => watch.observe(row));

  const renewRows = async () => {
    if (!seen.size) return;
    const from = Math.min(...seen), count = Math.min(200, Math.max(...seen) - from + 1);
    const part = await fetchPart(`;part=rows;from=${from};count=${count}`);
    for (const now of part.querySelectorAll('tr')) {
      const old = rows[+now.dataset.n];
      if (!old || old.dataset.k !== now.dataset.k) continue;
      now.querySelectorAll('td').forEach((cell, at) => {
        const place = old.querySelectorAll('td')[at];
        if (place && place.innerHTML !== cell.innerHTML) place.innerHTML = cell.innerHTML;
      });
    }
  };

  const live = (text, stale) => {
    state.textContent = text;
    top.classList.toggle('stale', stale);
  };

  let turn = 0;
  const tick = async () => {
    if (!paused && !document.hidden) {
      try {
        await renewTop();
        if (turn++ % 2 === 0) await renewRows();
        [wait, last] = [2000, Date.now()];
        live('live', false);
      } catch {
        wait = Math.min(wait * 2, 8000);
        live(last ? `no answer for ${Math.round((Date.now() - last) / 1000)} s` : 'no answer', true);
      }
    }
    setTimeout(tick, wait);
  };
  state.hidden = filter.hidden = false;
  setTimeout(tick, wait);

  const pause = () => {
    paused = !paused;
    live(paused ? 'paused' : 'live', false);
  };
  state.addEventListener('click', pause);

  filter.addEventListener('input', () => {
    const text = filter.value.toLowerCase();
    for (const row of rows) row.hidden = !row.dataset.k.toLowerCase().includes(text);
    for (const section of document.querySelectorAll('main section')) section.hidden = !section.querySelector('tr[data-n]:not([hidden])');
  });

  // The last server that is up is not taken away by one click.
  document.addEventListener('submit', event => {
    const form = event.target, action = form.elements.action?.value;
    const chosen = [...form.querySelectorAll('input[name=s]:checked')].map(box => box.value);
    const takes = ['drain', 'maint', 'hnolb', 'hdown'].includes(action);
    const left = [...form.querySelectorAll('tr[data-k]')].filter(row =>
      row.querySelector('.s.up,.s.going,.s.unchecked') && row.querySelector('input') && !row.querySelector('input').checked);
    const what = form.elements.action?.selectedOptions[0]?.textContent;
    if (takes && chosen.length && !confirm(`${what}: ${chosen.join(', ')}?${left.length ? '' : '\nNo other server is left.'}`)) event.preventDefault();
  });

  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    const shown = () => rows.filter(row => !row.hidden);
    const at = shown().indexOf(document.activeElement.closest?.('tr[data-n]'));
    const go = step => {
      const next = shown()[Math.max(0, at + step)];
      if (next) { next.tabIndex = -1; next.focus(); }
    };
    const act = word => {
      const form = document.activeElement.closest?.('form') || document.querySelector('form:has(input:checked)');
      if (form?.elements.action && form.querySelector('input:checked')) { form.elements.action.value = word; form.requestSubmit(); }
    };
    const keys = {
      '/': () => filter.focus(), j: () => go(1), k: () => go(-1), p: pause,
      x: () => document.activeElement.querySelector?.('input[type=checkbox]')?.click(),
      d: () => act('drain'), r: () => act('ready'), m: () => act('maint'),
      '?': () => { const help = document.getElementById('keys'); help.open = !help.open; },
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
})();
