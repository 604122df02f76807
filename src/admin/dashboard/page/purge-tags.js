/** Choosing what to purge: a kind, an id, as many as are wanted. */
import { fill, h, say, set } from './dom.js';
import { CLASSES } from './shapes.js';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const ID = /^[A-Za-z0-9_-]{1,64}$/;

const KINDS = /** @type {const} */ ([
  {
    kind: 'evaluation',
    name: 'Evaluation',
    pattern: ID,
    form: 'an evaluation’s id: 1 to 64 of A-Z, a-z, 0-9, _ and -',
  },
  { kind: 'workspace', name: 'Workspace', pattern: UUID, form: 'a workspace’s UUID' },
  { kind: 'scorecard', name: 'Scorecard', pattern: ID, form: 'a scorecard’s id: 1 to 64 of A-Z, a-z, 0-9, _ and -' },
  { kind: 'class', name: 'Class', pattern: null, form: '' },
  { kind: 'all', name: 'Everything', pattern: null, form: '' },
]);

/**
 * The tag of a kind and an id; null where the id is none of that kind. Pure.
 * @param {string} kind
 * @param {string} id
 */
export function tagOf(kind, id) {
  if (kind === 'all') return 'all';
  if (kind === 'class') return CLASSES.some((cacheClass) => cacheClass === id) ? `class:${id}` : null;
  const known = KINDS.find((candidate) => candidate.kind === kind);
  return known?.pattern?.test(id) === true ? `${kind}:${id}` : null;
}

/** @param {() => void} changed */
export function tagPicker(changed) {
  /** @type {readonly string[]} */
  let tags = [];
  const entry = tagEntry();
  const add = h('button', { type: 'button' }, 'Add');
  const chosen = h('ul', { class: 'tag-list', 'aria-label': 'To be purged' });
  const choose = (/** @type {readonly string[]} */ wanted) => {
    tags = [...new Set(wanted)];
    fill(chosen, ...tags.map((tag) => tagItem(tag, () => leaveOut(tag))));
    chosen.hidden = tags.length === 0;
    changed();
  };
  const leaveOut = (/** @type {string} */ tag) => {
    choose(tags.filter((one) => one !== tag));
    add.focus();
  };
  const put = () => {
    const tag = entry.take();
    if (tag === null) return false;
    choose([...tags, tag]);
    return true;
  };
  add.addEventListener('click', put);
  chosen.hidden = true;
  return {
    element: h('div', {}, h('div', { class: 'fields' }, ...entry.fields, add), entry.fault, chosen),
    tags: () => tags,
    /** Takes over what was typed but not added, as somebody who presses Enter expects; false where it is faulty. */
    commit: () => (entry.isTyped() || tags.length === 0 ? put() : true),
  };
}

/**
 * @param {string} tag
 * @param {() => void} leaveOut
 */
function tagItem(tag, leaveOut) {
  return h(
    'li',
    {},
    h('code', {}, tag),
    h('button', { type: 'button', class: 'remove', 'aria-label': `Leave out ${tag}`, onclick: leaveOut }, '×'),
  );
}

/** The fields in which one tag is put together. */
function tagEntry() {
  const kind = h('select', {}, ...KINDS.map((one) => h('option', { value: one.kind }, one.name)));
  const id = h('input', { type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false' });
  const classes = h('select', {}, ...CLASSES.map((cacheClass) => h('option', { value: cacheClass }, cacheClass)));
  const idField = h('label', { class: 'field grow' }, h('span', {}, 'Id'), id);
  const classField = h('label', { class: 'field grow', hidden: true }, h('span', {}, 'Class'), classes);
  const fault = h('p', { class: 'fault', role: 'status' });
  kind.addEventListener('change', () => {
    idField.hidden = kind.value === 'class' || kind.value === 'all';
    classField.hidden = kind.value !== 'class';
    say(fault, '');
  });
  return {
    fields: [h('label', { class: 'field' }, h('span', {}, 'What'), kind), idField, classField],
    fault,
    isTyped: () => !idField.hidden && id.value.trim() !== '',
    /** The tag, and the field is empty again; null where what stands there is none, and that is told. */
    take: () => {
      const tag = tagOf(kind.value, kind.value === 'class' ? classes.value : id.value.trim());
      set(id, 'aria-invalid', tag === null ? 'true' : null);
      const form = KINDS.find((one) => one.kind === kind.value)?.form ?? 'an id';
      say(fault, tag === null ? `“${id.value}” is not ${form}.` : '');
      if (tag === null) id.focus();
      else id.value = '';
      return tag;
    },
  };
}
