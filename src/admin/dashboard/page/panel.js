/** A section of the page: its heading, how old its data are, and what went wrong, with a way to try again. */
import { announce, fill, freshId, h, say, set } from './dom.js';
import { ago, moment } from './format.js';
import { icon } from './icons.js';

/**
 * @typedef {Pick<import('./resource.js').Resource<unknown>, 'error' | 'atMs' | 'value' | 'isStale' | 'refresh' | 'subscribe'>} Source
 */

/**
 * @typedef {object} PanelOptions
 * @property {string} id What links of the page lead to.
 * @property {string} title
 * @property {string} [hint] One line under the heading: what this is for.
 * @property {readonly Source[]} sources What the section shows; their failures show in it.
 * @property {() => void} draw Called with each answer, as soon as every source has one.
 * @property {readonly import('./dom.js').Child[]} [actions] At the right of the heading.
 */

/**
 * @param {PanelOptions} options
 * @param {...import('./dom.js').Child} body
 */
export function panel({ id, title, hint, sources, draw, actions = [] }, ...body) {
  const headingId = freshId();
  const age = h('span', { class: 'stale', hidden: true });
  const trouble = h('div', { class: 'trouble', role: 'status', hidden: true });
  const content = h('div', { class: 'panel-body' }, ...body);
  const section = h(
    'section',
    {
      id,
      class: `panel panel-${id}`,
      'aria-labelledby': headingId,
      'data-state': sources.length > 0 ? 'waiting' : 'there',
    },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', { id: headingId }, title),
      age,
      h('div', { class: 'panel-actions' }, ...actions),
    ),
    hint === undefined ? null : h('p', { class: 'hint' }, hint),
    trouble,
    content,
  );

  const showAge = () => {
    const nowMs = Date.now();
    const stale = sources.filter((source) => source.isStale(nowMs));
    age.hidden = stale.length === 0;
    if (stale.length > 0) {
      const oldestMs = Math.min(...stale.map((source) => source.atMs));
      fill(age, icon('clock'), `stale: ${ago(oldestMs, nowMs)}`);
    }
  };
  const update = () => {
    showTrouble(trouble, sources);
    showAge();
    if (!sources.every((source) => source.value !== null)) return;
    section.dataset['state'] = 'there';
    draw();
  };
  for (const source of sources) source.subscribe(update);
  if (sources.length > 0) setInterval(showAge, 1000);
  return section;
}

/**
 * @param {HTMLElement} trouble
 * @param {readonly Source[]} sources
 */
function showTrouble(trouble, sources) {
  const failed = sources.filter((source) => source.error !== null);
  const [first] = failed;
  if (first === undefined) {
    trouble.hidden = true;
    fill(trouble);
    return;
  }
  const since = first.value === null ? '' : ` What is shown is from ${moment(first.atMs, Date.now())}.`;
  const message = `${first.error ?? ''}${since}`;
  // The button must not be made anew under somebody's finger at each failure.
  if (!trouble.hidden && trouble.dataset['message'] === message) return;
  trouble.dataset['message'] = message;
  trouble.hidden = false;
  fill(
    trouble,
    icon('warning'),
    h('p', {}, message),
    h(
      'button',
      { type: 'button', class: 'small', onclick: () => void Promise.all(failed.map((s) => s.refresh())) },
      'Try again',
    ),
  );
}

/**
 * A place under a form or button for what came of an action.
 */
export function outcome() {
  const element = h('div', { class: 'outcome', role: 'status' });
  return {
    element,
    clear: () => fill(element),
    /** @param {...import('./dom.js').Child} children */
    done: (...children) => {
      set(element, 'data-kind', 'done');
      fill(element, icon('done'), h('div', {}, ...children));
    },
    /** @param {string} message */
    failed: (message) => {
      set(element, 'data-kind', 'failed');
      fill(element, icon('warning'), h('p', { class: 'pre' }, message));
    },
    /** @param {string} message */
    busy: (message) => {
      set(element, 'data-kind', 'busy');
      fill(element, h('p', {}, message));
    },
  };
}

/**
 * Runs an action for a button: the button waits, what fails is told in place.
 * @param {HTMLButtonElement} button
 * @param {ReturnType<typeof outcome>} told
 * @param {() => Promise<void>} run
 */
export async function act(button, told, run) {
  if (button.getAttribute('aria-disabled') === 'true') return;
  const label = button.textContent;
  // Not `disabled`: that would throw the focus to the top of the page.
  set(button, 'aria-disabled', 'true');
  told.clear();
  try {
    await run();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    told.failed(message);
    announce(message);
  } finally {
    set(button, 'aria-disabled', null);
    say(button, label);
  }
}
