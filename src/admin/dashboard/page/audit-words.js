/** Changes in words. Pure. */

/** @type {ReadonlyMap<string, string>} */
const ACTIONS = new Map([
  ['key.create', 'created the key'],
  ['key.activate', 'made the key active again'],
  ['key.deprecate', 'deprecated the key'],
  ['key.revoke', 'revoked the key'],
  ['key.rotate', 'rotated the key'],
  ['key.import', 'imported'],
  ['cache.ttl.set', 'set the times of'],
  ['cache.ttl.reset', 'reset the times of'],
  ['cache.purge', 'purged'],
  ['cache.maintenance.on', 'began maintenance of'],
  ['cache.maintenance.move', 'moved the end of maintenance of'],
  ['cache.maintenance.off', 'ended maintenance of'],
]);

/** @param {string} action */
export function actionWords(action) {
  return ACTIONS.get(action) ?? action;
}

/** Where an entry names more members than a line has room for. */
const MOST_MEMBERS = 8;
const LONGEST_VALUE = 80;

/**
 * What differs between before and after, member by member: `fresh 30s → 45s`; of something new, what it is.
 * @param {unknown} from
 * @param {unknown} to
 * @returns {string}
 */
export function differenceWords(from, to) {
  if (!isRecord(from) && !isRecord(to)) {
    return JSON.stringify(from) === JSON.stringify(to)
      ? ''
      : [from, to]
          .filter((side) => side !== null)
          .map(valueWords)
          .join(' → ');
  }
  const [before, after] = [isRecord(from) ? from : {}, isRecord(to) ? to : {}];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const words = changed.slice(0, MOST_MEMBERS).map((name) => memberWords(name, before[name], after[name]));
  return words.filter((text) => text !== '').join(', ') + (changed.length > MOST_MEMBERS ? ', …' : '');
}

/**
 * @param {string} name
 * @param {unknown} before
 * @param {unknown} after
 */
function memberWords(name, before, after) {
  const [was, is] = [valueWords(before), valueWords(after)];
  if (was === '' && is === '') return '';
  return before === undefined || was === '' ? `${name} ${is}` : `${name} ${was} → ${is === '' ? 'none' : is}`;
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function valueWords(value) {
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return cut(value.map(valueWords).join(' + '));
  if (isRecord(value)) {
    return Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => `${name} ${valueWords(member)}`)
      .join(' ');
  }
  return cut(typeof value === 'string' ? value : JSON.stringify(value));
}

/** @param {string} text */
function cut(text) {
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}

/**
 * @param {unknown} value
 * @returns {value is Readonly<Record<string, unknown>>}
 */
function isRecord(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
