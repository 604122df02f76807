/** Purging by tag: what would go is always shown first. */
import { ask } from './dialogs.js';
import { announce, h, say, set } from './dom.js';
import { bytes, count } from './format.js';
import { act, outcome, panel } from './panel.js';
import { tagPicker } from './purge-tags.js';
import { readPurge } from './shapes.js';

/** @typedef {import('./shapes.js').PurgeResult} PurgeResult */

const PATH = 'api/cache/purge';

/**
 * What a purge has to be confirmed with: the name of the class, or `all`; undefined where the button is enough. Pure.
 * @param {readonly string[]} tags
 */
export function wordToType(tags) {
  if (tags.includes('all')) return 'all';
  return tags.find((tag) => tag.startsWith('class:'))?.slice('class:'.length);
}

/** @param {import('./times-change.js').Means} means */
export function purgePanel({ api, changed }) {
  const told = outcome();
  /** @type {PurgeResult | null} Of exactly what is chosen now: only that may be purged. */
  let shown = null;
  const show = (/** @type {PurgeResult | null} */ result) => {
    shown = result;
    buttons.show({ isEmpty: picker.tags().length === 0, shown });
  };
  const forget = () => {
    told.clear();
    show(null);
  };
  const dryRun = async () => {
    if (!picker.commit()) return;
    const wanted = { tags: picker.tags(), mode: mode.chosen() };
    const result = await api.call(PATH, readPurge, { method: 'POST', body: { ...wanted, dryRun: true } });
    // What was chosen, not what it came to: the answer names tags that only the gateway itself may give.
    show({ ...result, ...wanted });
    const words = `Would purge ${entriesOf(result)}, ${bytes(result.bytes)}.`;
    told.done(h('p', {}, h('strong', {}, words)), h('p', {}, wouldWords(result)));
    announce(words);
  };
  const purge = async () => {
    if (shown === null) return;
    const { tags, mode: how } = shown;
    await ask(
      questionOf(shown, async () => {
        const result = await api.call(PATH, readPurge, { method: 'POST', body: { tags, mode: how } });
        show(null);
        const words = `Purged ${entriesOf(result)}, ${bytes(result.bytes)}.`;
        told.done(h('p', {}, h('strong', {}, words)));
        announce(words);
        await changed();
      }),
    );
  };
  const mode = modeChoice(forget);
  const buttons = purgeButtons(() => void purge());
  const picker = tagPicker(forget);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void act(buttons.dry, told, dryRun);
  };
  const form = h('form', { onsubmit: submit }, picker.element, mode.element, buttons.element, told.element);
  show(null);
  return panel({ id: 'purge', title: 'Purge', sources: [], draw: () => {} }, form);
}

/** @param {() => void} changed */
function modeChoice(changed) {
  const soft = h('input', { type: 'radio', name: 'purge-mode', value: 'soft', checked: true, onchange: changed });
  const hard = h('input', { type: 'radio', name: 'purge-mode', value: 'hard', onchange: changed });
  const element = h(
    'fieldset',
    { class: 'modes' },
    h('legend', { class: 'hidden' }, 'How'),
    h('label', {}, soft, h('span', {}, h('strong', {}, 'Soft'), ' stale, served while refreshed')),
    h('label', {}, hard, h('span', {}, h('strong', {}, 'Hard'), ' gone at once')),
  );
  return { element, chosen: () => (hard.checked ? 'hard' : 'soft') };
}

/** @param {() => void} purge */
function purgeButtons(purge) {
  const dry = h('button', { type: 'submit' }, 'Dry run');
  const real = h(
    'button',
    { type: 'button', class: 'danger', 'aria-describedby': 'purge-why', onclick: purge },
    'Purge …',
  );
  const why = h('p', { class: 'hint', id: 'purge-why' });
  return {
    element: h('div', {}, h('div', { class: 'buttons' }, dry, real), why),
    dry,
    /** @param {{ readonly isEmpty: boolean, readonly shown: PurgeResult | null }} state */
    show: ({ isEmpty, shown }) => {
      set(real, 'aria-disabled', shown === null ? 'true' : null);
      say(real, shown === null ? 'Purge …' : `Purge ${entriesOf(shown)} …`);
      const next = isEmpty ? 'Say what to purge; several can be added.' : 'A dry run shows what would go.';
      say(why, shown === null ? `${next} Only then can it be purged.` : 'Nothing has been purged yet.');
    },
  };
}

/** @param {PurgeResult} result */
function entriesOf({ entries }) {
  return `${count(entries)} ${entries === 1 ? 'entry' : 'entries'}`;
}

/** @param {PurgeResult} result */
function wouldWords({ mode }) {
  return mode === 'soft'
    ? 'They would be stale: still served, and refreshed as they are read.'
    : 'They would be gone: the next read of each asks the store.';
}

/**
 * @param {PurgeResult} before
 * @param {() => Promise<void>} run
 * @returns {import('./dialogs.js').Question}
 */
function questionOf(before, run) {
  const { tags, mode, bytes: size } = before;
  const typed = wordToType(tags);
  const effect =
    mode === 'soft'
      ? `${bytes(size)} become stale: still served while each is refreshed once.`
      : `${bytes(size)} are gone at once: the next read of each asks the store.`;
  return {
    title: `Purge ${entriesOf(before)}?`,
    body: [h('ul', { class: 'tag-list' }, ...tags.map((tag) => h('li', {}, h('code', {}, tag)))), h('p', {}, effect)],
    yes: mode === 'soft' ? 'Purge softly' : 'Purge',
    isGrave: true,
    ...(typed === undefined ? {} : { typed }),
    run,
  };
}
