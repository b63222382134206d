// What tests/browser.py asks of a page. Every function returns plain data.
({
  // An element in words, for a message.
  name(e) {
    const text = (e.getAttribute('aria-label') || e.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 60);
    return `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''}${e.classList.length ? '.' + [...e.classList].join('.') : ''} "${text}"`;
  },

  rgba(text) {
    const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  },
  over([r, g, b, a], under) { return [r, g, b].map((c, i) => c * a + under[i] * (1 - a)); },
  // Relative luminance and contrast, as WCAG 2.1 defines them.
  luminance(colour) {
    const [r, g, b] = colour.map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  },
  contrast(one, other) {
    const [a, b] = [this.luminance(one), this.luminance(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  },
  ground(e) {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = this.rgba(getComputedStyle(at).backgroundColor);
      if (c[3] > 0) layers.unshift(c);
    }
    return layers.reduce((under, c) => this.over(c, under), [255, 255, 255]);
  },
  shown(e) { return e.checkVisibility() && e.getClientRects().length > 0; },

  // Text below 4.5:1, and what is drawn below 3:1. Grid lines only help the eye along and are left out.
  faint() {
    const found = {};
    const say = (kind, e, ratio, least) => {
      if (ratio < least) found[`${kind} ${ratio.toFixed(2)} ${this.name(e.closest('svg') && kind !== 'text' ? e.closest('svg') : e)}`] = 1;
    };
    let texts = 0, strokes = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const e = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || !this.shown(e)) continue;
      const style = getComputedStyle(e), ground = this.ground(e);
      texts++;
      say('text', e, this.contrast(this.over(this.rgba(e.closest('svg') ? style.fill : style.color), ground), ground), 4.5);
    }
    for (const e of document.querySelectorAll('svg path, svg line, svg rect, svg circle')) {
      if (e.closest('.role-axis-grid, .background') || e.classList.contains('background') || !this.shown(e)) continue;
      const style = getComputedStyle(e), ground = this.ground(e);
      for (const part of ['stroke', 'fill']) {
        if (!style[part].startsWith('rgb')) continue;
        const c = this.rgba(style[part]);
        c[3] *= Number(style[part + 'Opacity']) * Number(style.opacity);
        if (c[3] === 0) continue;
        strokes++;
        say('drawn', e, this.contrast(this.over(c, ground), ground), 3);
      }
    }
    return {texts, strokes, faint: Object.keys(found)};
  },

  // What is wider than the page, and what scrolls without being reachable and named.
  layout() {
    const wide = [...document.querySelectorAll('main *')].filter(e => this.shown(e) && e.scrollWidth > e.clientWidth + 1 &&
      ['auto', 'scroll'].includes(getComputedStyle(e).overflowX));
    return {
      page: document.documentElement.scrollWidth, window: innerWidth, scrolling: wide.length,
      // a shade stays at the edge, and a cover that scrolls hides it where the content ends
      unhinted: wide.filter(e => !['local', 'scroll'].every(a => getComputedStyle(e).backgroundAttachment.split(', ').includes(a))).map(e => this.name(e)),
      unreachable: wide.filter(e => e.tabIndex !== 0 || e.getAttribute('role') !== 'region' || !e.getAttribute('aria-label')).map(e => this.name(e)),
    };
  },

  whole() {
    const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
    const targets = [...document.querySelectorAll('[href^="#"]')].map(e => e.getAttribute('href').slice(1));
    const drawn = [...document.querySelectorAll('svg *')].flatMap(e => [...e.attributes].flatMap(a => a.value.match(/url\(["']?#([^)"']+)/)?.[1] ?? []));
    return {
      title: document.title, lang: document.documentElement.lang, charts: document.querySelectorAll('svg[role=img][aria-label]').length,
      scripts: document.querySelectorAll('script, iframe, object, embed, img, link, form, input, svg a, [onclick], [onload], [onerror]').length,
      links: [...document.querySelectorAll('a[href]')].map(e => e.href).filter(h => !h.startsWith(location.href.split('#')[0])),
      twice: ids.filter((id, i) => ids.indexOf(id) !== i), nowhere: [...targets, ...drawn].filter(id => !ids.includes(decodeURIComponent(id))),
      headings: [...document.querySelectorAll('h1, h2, h3')].filter(e => !e.id).map(e => this.name(e)),
      contents: [...document.querySelectorAll('nav a')].map(e => e.textContent), sections: [...document.querySelectorAll('h2')].map(e => e.textContent),
      labels: [...document.querySelectorAll('[role=region]')].map(e => e.getAttribute('aria-label')).filter((l, i, all) => !l || all.indexOf(l) !== i),
      verdict: document.querySelector('.verdict')?.textContent.trim() ?? null,
    };
  },

  // How many of these windows the page fills, and what is folded.
  folded() {
    const closed = [...document.querySelectorAll('details')].filter(e => !e.open);
    return {screens: document.documentElement.scrollHeight / innerHeight, closed: closed.map(e => e.querySelector('summary').textContent.trim())};
  },
  unfold() { for (const e of document.querySelectorAll('details')) e.open = true; },

  // What Tab should reach, in the order of the page.
  stops() { return [...document.querySelectorAll('a[href], summary, [tabindex="0"]')].filter(e => this.shown(e)).map(e => this.name(e)); },
  focus() {
    const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    return {
      name: e === document.body ? null : this.name(e),
      seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && box.width > 0 && box.right > 0 && box.left < innerWidth &&
        box.bottom > 0 && box.top < innerHeight &&
        this.contrast(this.rgba(style.outlineColor).slice(0, 3), this.ground(e.parentElement)) >= 3,
    };
  },

  // On paper nothing scrolls: all must fit, rows must not be cut, and a table's head comes again on each page.
  paper() {
    const wide = [...document.querySelectorAll('main *')].filter(e => !e.closest('svg') && this.shown(e) && e.getBoundingClientRect().right > innerWidth + 1);
    return {
      page: document.documentElement.scrollWidth, window: innerWidth, wide: wide.map(e => this.name(e)),
      cut: [...document.querySelectorAll('tr, figure')].filter(e => getComputedStyle(e).breakInside !== 'avoid').length,
      heads: [...document.querySelectorAll('thead')].filter(e => getComputedStyle(e).display !== 'table-header-group').length,
      screen_only: [...document.querySelectorAll('.skip, .contents')].filter(e => this.shown(e)).length,
    };
  },
})
