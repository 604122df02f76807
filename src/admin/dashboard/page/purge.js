/** Purging by tag: a dry run always shows first what would go. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { call } from './api.js';
import { bytes, counted } from './format.js';
import { change } from './live.js';
import { Ask, button, Checkbox, Form, SelectField, TextField, useDialog } from './ui.js';

/** @typedef {import('./api.js').Answer<'purge'>} Purged */
/** @typedef {{ readonly tags: readonly string[], readonly mode: string, readonly exact?: true }} Purge As the interface takes it. */

const MODES = [
  ['hard', 'Hard: gone at once'],
  ['soft', 'Soft: stale, served while it is refreshed'],
];
const TAGS = 'evaluation:ID, workspace:UUID, scorecard:ID, class:list or all; several with spaces between';

export function PurgeForm() {
  const [typed, setTyped] = useState('');
  const [mode, setMode] = useState('hard');
  const [isExact, setExact] = useState(false);
  const [said, setSaid] = useState('A dry run shows what would go; only then can it be purged.');
  /** The dry run, and what it was of: only exactly that can be purged. */
  const [shown, setShown] = useState(/** @type {{ readonly purge: Purge, readonly result: Purged } | null} */ (null));
  const { dialog, open } = useDialog();
  const tags = typed.split(/[\s,]+/).filter((tag) => tag !== '');
  const purge = { tags, mode, ...(isExact ? { exact: /** @type {const} */ (true) } : {}) };
  const isShown = shown !== null && JSON.stringify(shown.purge) === JSON.stringify(purge);
  const dryRun = async () => {
    const result = await call('purge', { body: { ...purge, dryRun: true } });
    setShown({ purge, result });
    setSaid(`Would purge ${sizeOf(result)}. Nothing has been purged yet.`);
  };
  const done = (/** @type {Purged} */ result) => {
    setShown(null);
    setSaid(`Purged ${sizeOf(result)}.`);
  };
  const ask = () => open((close) => html`<${Confirm} ...${shown} done=${done} close=${close} />`);
  const label = isShown ? `Purge ${entriesOf(shown.result)} …` : 'Purge …';
  const real = button(label, ask, { kind: 'danger', isOff: !isShown });
  return html`<${Form} submit="Dry run" run=${dryRun} isOff=${tags.length === 0} buttons=${real}>
      <${TextField} label="Tags" help=${TAGS} value=${typed} onText=${setTyped} />
      <${SelectField} label="Mode" value=${mode} options=${MODES} onChoice=${setMode} />
      <${Checkbox}
        label="Exactly these tags, without the lists that may hold them"
        isChecked=${isExact}
        toggle=${() => setExact(!isExact)}
      />
    <//>
    <p role="status">${said}</p>
    ${dialog}`;
}

/** @param {{ readonly purge: Purge, readonly result: Purged, readonly done: (result: Purged) => void, readonly close: () => void }} props */
function Confirm({ purge, result: expected, done, close }) {
  const run = async () => done(await change('purge', { body: purge }, (result) => `Purged ${sizeOf(result)}.`));
  const isSoft = purge.mode === 'soft';
  const effect = isSoft
    ? 'stale: still served while each is refreshed once'
    : 'gone at once: the next read waits for the store';
  return html`<${Ask}
    title="Purge ${entriesOf(expected)}?"
    submit=${isSoft ? 'Purge softly' : 'Purge'}
    kind="danger"
    word=${wordToType(purge.tags)}
    run=${run}
    close=${close}
  >
    <p><code>${purge.tags.join(' ')}</code></p>
    <p>${sizeOf(expected)} will be ${effect}.</p>
  <//>`;
}

/**
 * The word to be typed before a purge: `all`, or the name of the first class; nothing for single ids.
 * @param {readonly string[]} tags
 */
function wordToType(tags) {
  if (tags.includes('all')) return 'all';
  return tags.find((tag) => tag.startsWith('class:'))?.slice('class:'.length) ?? '';
}

/** @param {Purged} purged */
function entriesOf({ entries, complete }) {
  return `${complete ? '' : 'at least '}${counted(entries, 'entry', 'entries')}`;
}

/** @param {Purged} purged */
function sizeOf(purged) {
  const { lists } = purged;
  if (lists === null) return `${entriesOf(purged)}, ${bytes(purged.bytes)}`;
  const why = lists.ownerKnown ? '' : ', because no copy tells whose it is';
  const among = `${counted(lists.entries, 'list')} of ${counted(lists.workspaces, 'workspace')}${why}`;
  return `${entriesOf(purged)}, ${bytes(purged.bytes)}, among them ${among}`;
}
