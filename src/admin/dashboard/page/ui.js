/** The parts that all views are made of: panel, table, form, dialog. */
import { html } from 'htm/preact';
import { createContext } from 'preact';
import { useContext, useEffect, useErrorBoundary, useId, useRef, useState } from 'preact/hooks';
import { messageOf } from './api.js';
import { ROUTES } from './declared.js';
import { moment } from './format.js';
import { live } from './live.js';
import { Store, useStore } from './store.js';

/** @typedef {import('preact').ComponentChildren} Children */
/** @typedef {'good' | 'warn' | 'bad' | 'unknown'} Kind */

/**
 * Tells states apart by form, not only by colour. Words that say the same follow it.
 * @param {{ readonly kind: Kind }} props
 */
export function Sign({ kind }) {
  return html`<span class="sign sign-${kind}" aria-hidden="true"></span>`;
}

/**
 * The state of a dependency.
 * @param {string} status
 */
export function stateText(status) {
  const kind = status === 'ok' ? 'good' : status === 'degraded' ? 'warn' : 'unknown';
  return html`<${Sign} kind=${kind} />${status}`;
}

/**
 * Why an answer is not about all of it; nothing without a problem.
 * @param {string | null} problem
 */
export function problemText(problem) {
  return problem !== null && html`<p><${Sign} kind="warn" />${problem}.</p>`;
}

/**
 * `kind`: how it looks; `name`: what it does, where the text says too little without the row that it stands in; `isOff`:
 * it does nothing now, but stays focusable.
 * @param {string} text
 * @param {() => void} onPress
 * @param {{ readonly kind?: string, readonly name?: string, readonly isOff?: boolean }} [options]
 */
export function button(text, onPress, { kind = '', name, isOff = false } = {}) {
  const state = { 'aria-label': name, 'aria-disabled': isOff ? 'true' : undefined };
  return html`<button type="button" class=${kind} onClick=${() => isOff || onPress()} ...${state}>${text}</button>`;
}

/** The dialog of a component: `open` takes what draws it, given what closes it. */
export function useDialog() {
  const [dialog, setDialog] = useState(/** @type {Children} */ (null));
  const close = () => setDialog(null);
  const open = (/** @type {(close: () => void) => Children} */ draw) => setDialog(draw(close));
  return { dialog, open };
}

/**
 * Tells whether the person's role allows an endpoint; drawn anew when it is known. Until then nothing is allowed.
 * @returns {(route: import('./api.js').Route) => boolean}
 */
export function useMay() {
  const { data } = useStore(live.who);
  return (route) => data !== null && (ROUTES[route].roles ?? [data.role]).includes(data.role);
}

/** @type {Store<{ readonly data: null }>} */
const NOTHING = new Store({ data: null });

/**
 * The last answer of a live store, if this person may have it; null until there is one.
 * @template T
 * @param {import('./api.js').Route} route
 * @param {import('./live.js').Live<T>} of
 * @returns {T | null}
 */
export function useAllowed(route, of) {
  return useStore(/** @type {Store<{ readonly data: T | null }>} */ (useMay()(route) ? of : NOTHING)).data;
}

/**
 * Whose counts are shown, before them: of how many processes, and why not all of theirs.
 * @param {Pick<import('./api.js').Answer<'cacheTop'>, 'scope' | 'processes' | 'problem'> & { readonly since?: string }} counted
 */
export function whose({ scope, processes, problem, since }) {
  const of = processes === 1 ? '1 process' : `${processes} processes`;
  const begin = since === undefined ? 'the last hour' : `since ${moment(since)}`;
  if (problem === null) return html`<p class="hint">Of ${of}, ${begin}.</p>`;
  const only = scope === 'process' ? `Only ${of}` : `Of ${of}`;
  return html`<p><${Sign} kind="warn" /><strong>${only}, ${begin}:</strong> ${problem}.</p>`;
}

/** Whether the page is as narrow as on a phone now. */
export function isPhone() {
  return matchMedia('(max-width: 900px)').matches;
}

/**
 * A section about one live answer, which `show` draws. After a failure the last answer stays, greyed, with its time and
 * the reason; while the gateway is away, the top of the page gives the reason. `folds`: on a phone it is closed until it
 * is asked for.
 * @template T
 * @param {{ readonly id: string, readonly title: string, readonly of: import('./live.js').Live<T>, readonly show: (props: { readonly data: T }) => Children, readonly folds?: boolean }} props
 */
export function Panel({ id, title, of, show, folds = false }) {
  const [isFolded, fold] = useState(folds && isPhone());
  const { data, atMs, error } = useStore(of);
  const isAway = useStore(live.readiness).error !== null;
  // An answer that can't be drawn: the gateway has another version, or something in between answered.
  const boundary = useErrorBoundary();
  const isBroken = boundary[0] !== undefined;
  const retry = async () => {
    await of.refresh();
    boundary[1]();
  };
  const asOf = data === null ? '' : `As of ${moment(atMs)}.`;
  const trouble = isBroken ? 'The answer is not as this page expects. Reload the page.' : error;
  const state = data === null ? 'waiting' : trouble === null ? 'current' : 'old';
  return html`<section id=${id} class="panel" aria-labelledby="${id}-title" data-state=${state}>
    <div class="panel-head">
      <h2 id="${id}-title">${title}</h2>
      ${isFolded && button('Show', () => fold(false), { name: `Show ${title}` })}
    </div>
    ${
      trouble !== null &&
      html`<div class="trouble" role="status">
        <p><${Sign} kind="warn" />${isAway ? '' : trouble} ${asOf}</p>
        ${button('Try again', () => void retry())}
      </div>`
    }
    <div class="panel-body">
      ${!isBroken && !isFolded && data !== null && html`<${show} data=${data} />`}
      ${trouble === null && data === null && html`<p class="hint">Loading …</p>`}
    </div>
  </section>`;
}

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {readonly Children[]} cells The first one names the row.
 */

/**
 * A table. The first column names the row: on a phone each row becomes a block beneath that name, with the column's name before
 * each cell. Columns whose name begins with `#` hold numbers; one without a name holds the row's buttons.
 * @param {string} label
 * @param {readonly string[]} columns
 * @param {readonly Row[]} rows
 * @param {string} [empty] Said if there are no rows.
 */
export function table(label, columns, rows, empty = 'Nothing yet.') {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const names = columns.map((column) => column.replace('#', ''));
  const kinds = columns.map((column) => (column === '' ? 'actions' : column.startsWith('#') ? 'number' : ''));
  const hiddenName = html`<span class="hidden">Actions</span>`;
  const cellOf = (/** @type {Children} */ cell, /** @type {number} */ index) =>
    index === 0
      ? html`<th scope="row">${cell}</th>`
      : html`<td class=${kinds[index]} data-label=${names[index]}>${cell}</td>`;
  return html`<table aria-label=${label}>
    <thead>
      <tr>
        ${names.map((name, index) => html`<th scope="col" class=${kinds[index]}>${name || hiddenName}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        ({ key, cells }) =>
          html`<tr key=${key}>
            ${cells.map(cellOf)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/**
 * A label and its control, which gets the attributes that tie label, help and fault to it.
 * @param {{ readonly label: string, readonly help?: string, readonly fault?: string, readonly children: (attributes: object) => Children }} props
 */
export function Field({ label, help = '', fault = '', children }) {
  const id = useId();
  const validity = fault === '' ? {} : { 'aria-invalid': 'true' };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, 'aria-describedby': `${id}-help`, ...validity })}
    <span id="${id}-help" class=${fault === '' ? 'hint' : 'fault'}>${fault === '' ? help : fault}</span>
  </div>`;
}

/** The fault of a value typed into a field, which shows it. `member`: the name of the field. */
export class FieldError extends Error {
  /** @param {string} member @param {string} message */
  constructor(member, message) {
    super(message);
    this.member = member;
  }
}

/**
 * The faults of the form around, by the member of the body that each field makes, and the members that have a field.
 * @type {{ readonly faults: ReadonlyMap<string, string>, readonly fields: Set<string> }}
 */
const NO_FORM = { faults: new Map(), fields: new Set() };
const FormFaults = createContext(NO_FORM);

/**
 * The fault of a field; empty for none.
 * @param {string} member
 */
export function useFault(member) {
  const { faults, fields } = useContext(FormFaults);
  useEffect(() => {
    fields.add(member);
    return () => void fields.delete(member);
  }, [fields, member]);
  return faults.get(member) ?? '';
}

/** A fault as the gateway lists it: `- perMinute: given 0; allowed: an integer from 1`. */
const LISTED = /^- ([A-Za-z]+)[^:]*: (.*)$/;

/**
 * Puts faults to the fields that they are about, and says the rest.
 * @param {unknown} error
 * @param {ReadonlySet<string>} fields
 */
function placed(error, fields) {
  const message = messageOf(error);
  /** @type {Map<string, string>} */
  const faults = new Map();
  const lines = error instanceof FieldError ? [`- ${error.member}: ${message}`] : message.split('\n');
  const rest = lines.filter((line) => {
    const [, member = '', fault = ''] = LISTED.exec(line) ?? [];
    if (!fields.has(member)) return true;
    faults.set(member, [...(faults.get(member)?.split(' / ') ?? []), inWords(fault)].join(' / '));
    return false;
  });
  if (faults.size === 0) return { faults, failure: message };
  const others = rest.filter((line) => line.startsWith('- '));
  const marked = faults.size === 1 ? 'the marked field' : 'the marked fields';
  return { faults, failure: [`Nothing was changed: see ${marked}.`, ...others].join('\n') };
}

/** @param {string} fault */
function inWords(fault) {
  return fault
    .replace(/^missing; allowed: /, 'Missing. Allowed: ')
    .replace(/^given (.*); allowed: /, '$1 is not possible. Allowed: ');
}

/**
 * A field for one line of text. `member`: of the body that the form makes; `rest`: attributes of the input.
 * @param {{ readonly label: string, readonly help?: string, readonly fault?: string, readonly member?: string, readonly value: string, readonly onText: (text: string) => void, readonly rest?: object }} props
 */
export function TextField({ label, help, fault: given = '', member = '', value, onText, rest = {} }) {
  const found = useFault(member);
  const fault = given === '' ? found : given;
  const onInput = (/** @type {{ currentTarget: HTMLInputElement }} */ event) => onText(event.currentTarget.value);
  const fixed = { type: 'text', autocomplete: 'off', spellcheck: false, ...rest, value, onInput };
  return html`<${Field} label=${label} help=${help} fault=${fault}>
    ${(/** @type {object} */ attributes) => html`<input ...${fixed} ...${attributes} />`}
  <//>`;
}

/**
 * The texts of a form: `typed` has them by name, `field` draws the field of one. `members`: of the body that the form makes,
 * if they have other names.
 * @template {Readonly<Record<string, string>>} T
 * @param {T} initial
 * @param {Readonly<Record<string, string>>} [members]
 */
export function useTexts(initial, members = {}) {
  const [typed, setTyped] = useState(initial);
  const set = (/** @type {keyof T} */ name, /** @type {string} */ text) =>
    setTyped((all) => ({ ...all, [name]: text }));
  const field = (/** @type {keyof T} */ name, /** @type {string} */ label, help = '', rest = {}) =>
    html`<${TextField}
      ...${{
        label,
        help,
        rest,
        member: members[String(name)] ?? String(name),
        value: typed[name],
        onText: (/** @type {string} */ text) => set(name, text),
      }}
    />`;
  return { typed, set, field };
}

/**
 * A field to choose one of a few.
 * @param {{ readonly label: string, readonly value: string, readonly options: readonly (readonly string[])[], readonly onChoice: (value: string) => void }} props
 */
export function SelectField({ label, value, options, onChoice }) {
  const onChange = (/** @type {{ currentTarget: HTMLSelectElement }} */ event) => onChoice(event.currentTarget.value);
  return html`<${Field} label=${label}>
    ${(/** @type {object} */ attributes) =>
      html`<select onChange=${onChange} ...${attributes}>
        ${options.map(([option, name]) => html`<option value=${option} selected=${option === value}>${name}</option>`)}
      </select>`}
  <//>`;
}

/** @param {{ readonly label: Children, readonly isChecked: boolean, readonly toggle: () => void }} props */
export function Checkbox({ label, isChecked, toggle }) {
  return html`<label class="check"
    ><input type="checkbox" checked=${isChecked} onChange=${toggle} /><span>${label}</span></label
  >`;
}

/**
 * A form with one action: it runs once at a time, and its failure is shown in place: at the fields that it is about. `kind`: how the button looks.
 * `isOff`: there is nothing to submit now; the button stays focusable.
 * @param {{ readonly submit: string, readonly run: () => Promise<void>, readonly kind?: string, readonly isOff?: boolean, readonly buttons?: Children, readonly children?: Children }} props
 */
export function Form({ submit, run, kind = '', isOff = false, buttons, children }) {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  const [faults, setFaults] = useState(/** @type {ReadonlyMap<string, string>} */ (new Map()));
  const fields = useRef(/** @type {ReadonlySet<string>} */ (new Set())).current;
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  useEffect(() => {
    const first = form.current?.querySelector('[aria-invalid]');
    if (first instanceof HTMLElement) first.focus();
  }, [faults]);
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (isBusy || isOff) return;
    setBusy(true);
    setFailure('');
    setFaults(new Map());
    try {
      await run();
    } catch (error) {
      const found = placed(error, fields);
      setFaults(found.faults);
      setFailure(found.failure);
    }
    setBusy(false);
  };
  return html`<form ref=${form} onSubmit=${start}>
    <${FormFaults.Provider} value=${{ faults, fields }}>${children}<//>
    ${failure !== '' && html`<p class="failure" role="alert">${failure}</p>`}
    <div class="buttons">
      <button type="submit" class=${kind} aria-disabled=${isBusy || isOff ? 'true' : undefined}>${submit}</button>
      ${buttons}
    </div>
  </form>`;
}

/**
 * A modal dialog; when it closes, the focus returns to where it was.
 * @param {{ readonly title: string, readonly close: () => void, readonly children?: Children }} props
 */
export function Dialog({ title, close, children }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const headingId = useId();
  useEffect(() => {
    const opener = document.activeElement;
    ref.current?.showModal();
    return () => opener instanceof HTMLElement && opener.focus();
  }, []);
  return html`<dialog ref=${ref} aria-labelledby=${headingId} onClose=${close}>
    <h2 id=${headingId}>${title}</h2>
    ${children}
  </dialog>`;
}

/**
 * A dialog that asks before a change, and closes when it is made, or shows the warning in its answer. `word`: what has to be typed first.
 * @param {{ readonly title: string, readonly submit: string, readonly kind?: string, readonly word?: string, readonly run: () => Promise<void | { readonly warning?: string | null }>, readonly close: () => void, readonly children?: Children }} props
 */
export function Ask({ title, submit, kind = 'primary', word = '', run, close, children }) {
  const { typed, field } = useTexts({ word: '' });
  const [warning, setWarning] = useState('');
  const runAndClose = async () => {
    const answer = await run();
    if (typeof answer?.warning === 'string') setWarning(answer.warning);
    else close();
  };
  if (warning !== '') {
    return html`<${Dialog} key="warning" title="Done, but look again later" close=${close}>
      <p class="failure" role="alert">${warning}</p>
      <div class="buttons">${button('Close', close)}</div>
    <//>`;
  }
  const cancel = button('Cancel', close);
  return html`<${Dialog} title=${title} close=${close}>
    <${Form} submit=${submit} kind=${kind} run=${runAndClose} isOff=${typed.word.trim() !== word} buttons=${cancel}>
      ${children} ${word !== '' && field('word', `Type ${word} to go on`)}
    <//>
  <//>`;
}
