/** Making and changing elements. Data only ever becomes text or an attribute's value, never markup. */

/**
 * @typedef {string | Node | null | undefined | false} Child
 * @typedef {Readonly<Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>>} Props
 */

/**
 * An element: `h('button', { type: 'button', onclick: save, disabled: true }, 'Save')`. False, null and undefined leave
 * an attribute or a child out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === 'function') element.addEventListener(name.slice('on'.length), value);
    else set(element, name, value);
  }
  element.append(...present(children));
  return element;
}

/**
 * The same for SVG.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Readonly<Record<string, string | number>>} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...present(children));
  return element;
}

/**
 * Sets an attribute where it differs.
 * @param {Element} element
 * @param {string} name
 * @param {string | number | boolean | null | undefined} value
 */
export function set(element, name, value) {
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else {
    const text = value === true ? '' : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/**
 * Shows a text. Where it is there already nothing is touched, so that a selection in it and a screen reader's place stay.
 * @param {Element} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Replaces what an element holds.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/** @param {readonly Child[]} children */
function present(children) {
  return children.filter((child) => child !== null && child !== undefined && child !== false);
}

/**
 * Keeps an element's children in step with a list: one child an item, found again by its key, so that focus and
 * selection survive an update.
 * @template T
 * @param {Element} parent
 * @param {readonly T[]} items
 * @param {{ readonly key: (item: T) => string, readonly make: (item: T) => HTMLElement, readonly version?: (item: T) => string }} how
 *   `version`: what of an item shows; where it changes, the child is made anew. Without it, all of the item.
 */
export function keep(parent, items, { key, make, version = JSON.stringify }) {
  const had = new Map(
    Array.from(parent.children, (child) => [child instanceof HTMLElement ? child.dataset['key'] : undefined, child]),
  );
  const wanted = items.map((item) => {
    const before = had.get(key(item));
    const shown = version(item);
    if (before instanceof HTMLElement && before.dataset['version'] === shown) return before;
    const made = make(item);
    made.dataset['key'] = key(item);
    made.dataset['version'] = shown;
    return made;
  });
  const isSame = wanted.length === parent.children.length && wanted.every((child, at) => child === parent.children[at]);
  if (isSame) return;
  const focused = document.activeElement;
  const focusedKey = focused === null ? undefined : rowOf(focused, parent)?.dataset['key'];
  const focusedName = focused?.getAttribute('data-focus');
  parent.replaceChildren(...wanted);
  if (focusedKey !== undefined && document.activeElement !== focused)
    refocus(wanted, { focusedKey, focused, focusedName });
}

/**
 * Back to where the focus was: taking a child out of the document, even for a moment, loses it.
 * @param {readonly HTMLElement[]} rows
 * @param {{ readonly focusedKey: string, readonly focused: Element | null, readonly focusedName: string | null | undefined }} was
 */
function refocus(rows, { focusedKey, focused, focusedName }) {
  const row = rows.find((candidate) => candidate.dataset['key'] === focusedKey);
  if (row === undefined) return;
  const again =
    focused instanceof HTMLElement && row.contains(focused)
      ? focused
      : row.querySelector(`[data-focus="${CSS.escape(focusedName ?? '')}"]`);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/**
 * @param {Element} inner
 * @param {Element} parent
 * @returns {HTMLElement | null}
 */
function rowOf(inner, parent) {
  for (let at = /** @type {Element | null} */ (inner); at !== null; at = at.parentElement) {
    if (at.parentElement === parent) return at instanceof HTMLElement ? at : null;
  }
  return null;
}

/** An id that no other element has. */
export function freshId() {
  return `e${Math.random().toString(36).slice(2)}`;
}

/**
 * Tells a screen reader, without moving the focus.
 * @param {string} message
 */
export function announce(message) {
  const region = document.getElementById('announcements');
  if (region !== null) fill(region, h('p', {}, message));
}
