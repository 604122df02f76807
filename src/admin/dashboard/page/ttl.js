/** The TTLs in force of each class, and changing them: until they are reset, or for a while. */
import { html } from 'htm/preact';
import { duration, moment, NONE, parseDuration, written } from './format.js';
import { change } from './live.js';
import { Ask, button, FieldError, table, useDialog, useMay, useTexts } from './ui.js';

/** @typedef {import('./api.js').Answer<'listTtls'>['classes'][number]} Ttl */

const NAMES = /** @type {const} */ (['fresh', 'stale', 'error']);
const MEANINGS = {
  fresh: 'served as it is',
  stale: 'after that, served at once while one call refreshes it',
  error: 'from the end of fresh, served if the store fails',
};

/** @param {{ readonly data: readonly Ttl[] }} props */
export function Ttls({ data }) {
  const { dialog, open } = useDialog();
  const mayChange = useMay()('setTtl');
  const rows = data.map((ttl) => {
    const { class: name, setAt, setBy } = ttl;
    const isSet = NAMES.some((one) => ttl.source[one] === 'set');
    const by = setAt === null ? 'unknown when' : `${moment(setAt)} by ${setBy ?? 'unknown'}`;
    const edit = () => open((close) => html`<${ChangeTtl} ttl=${ttl} close=${close} />`);
    const reset = () => open((close) => html`<${ResetTtl} ttl=${ttl} close=${close} />`);
    const buttons = mayChange && [
      button('Change …', edit, { name: `Change TTLs of ${name}` }),
      button('Reset …', reset, { name: `Reset TTLs of ${name}`, isOff: !isSet }),
    ];
    return { key: name, cells: [name, ...NAMES.map((one) => ttlCell(ttl, one)), isSet ? by : NONE, buttons] };
  });
  return html`${table('TTLs', ['Class', '#Fresh', '#Stale', '#On error', '#Last set', ''], rows)} ${dialog}`;
}

/** @param {Ttl} ttl @param {typeof NAMES[number]} name */
function ttlCell(ttl, name) {
  const [ms, source, until] = [ttl[`${name}Ms`], ttl.source[name], ttl.until?.[name] ?? null];
  const end = until === null ? '' : ` until ${moment(until)}`;
  return html`${ms === 0 ? 'none' : duration(ms)} <span class="source">${source}${end}</span>`;
}

/**
 * Sets those of the three TTLs that differ from what is in force. `fresh`: proposed; `note`: what is known of it; `word`:
 * has to be typed, if it is not empty.
 * @param {{ readonly ttl: Ttl, readonly fresh?: string, readonly note?: string, readonly word?: string, readonly close: () => void }} props
 */
export function ChangeTtl({ ttl, fresh = ttl.fresh, note = '', word = '', close }) {
  const { typed, field } = useTexts({ fresh, stale: ttl.stale, error: ttl.error, length: '' }, { length: 'for' });
  const run = async () => {
    const wanted = NAMES.filter((name) => durationOf(typed[name], name) !== ttl[`${name}Ms`]);
    if (wanted.length === 0) throw new Error('Nothing differs from what is in force.');
    const times = Object.fromEntries(wanted.map((name) => [name, written(durationOf(typed[name], name))]));
    const end = typed.length.trim() === '' ? {} : { for: written(durationOf(typed.length, 'for')) };
    await change('setTtl', { id: ttl.class, body: { ...times, ...end } }, `The TTLs of ${ttl.class} were set.`);
  };
  return html`<${Ask} title="TTLs of ${ttl.class}" submit="Set" word=${word} run=${run} close=${close}>
    ${note !== '' && html`<p>${note}</p>`} ${NAMES.map((name) => field(name, name, MEANINGS[name]))}
    ${field('length', 'for', 'such as 1h: it then ends by itself; empty: until it is reset')}
    <p class="hint">In force in every process within a second, for stored answers too. The audit records who set it.</p>
  <//>`;
}

/**
 * Milliseconds of what was typed. Throws if it is no duration.
 * @param {string} typed
 * @param {string} member The form's member, for the fault.
 */
export function durationOf(typed, member) {
  const ms = parseDuration(typed);
  if (ms !== null) return ms;
  throw new FieldError(
    member,
    `“${typed}” is no duration. Write a whole number and a unit, such as 500ms, 45s, 2m, 1h or 7d.`,
  );
}

/** @param {{ readonly ttl: Ttl, readonly close: () => void }} props */
function ResetTtl({ ttl, close }) {
  const set = NAMES.filter((name) => ttl.source[name] === 'set').map((name) => `${name} ${ttl[name]}`);
  const run = () => change('resetTtl', { id: ttl.class }, `The TTLs of ${ttl.class} are as configured.`);
  return html`<${Ask} title="Reset the TTLs of ${ttl.class}?" submit="Reset" run=${run} close=${close}>
    <p>Set here: ${set.join(', ')}. The configuration holds again, in every process within a second.</p>
  <//>`;
}
