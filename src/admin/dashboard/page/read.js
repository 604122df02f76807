/** Readers: an answer of the gateway has an unknown shape until it has passed one of these. Pure. */

/**
 * @template T
 * @typedef {(value: unknown, at: string) => T} Reader
 */

/**
 * The answer is not what this page knows: the gateway has another version, or something in between answered.
 * @param {string} at The place in the answer.
 */
function mismatch(at) {
  return new Error(`The answer is not as this page expects at ${at}. Reload the page.`);
}

/** @type {Reader<string>} */
export function text(value, at) {
  if (typeof value === 'string') return value;
  throw mismatch(at);
}

/** @type {Reader<number>} */
export function number(value, at) {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw mismatch(at);
}

/** @type {Reader<boolean>} */
export function flag(value, at) {
  if (typeof value === 'boolean') return value;
  throw mismatch(at);
}

/** @type {Reader<unknown>} */
export function anything(value) {
  return value;
}

/** A time in ISO 8601, as Unix milliseconds.
 * @type {Reader<number>}
 */
export function time(value, at) {
  return number(Date.parse(text(value, at)), at);
}

/**
 * Null also if the member is missing: a gateway of another version may not have it.
 * @template T
 * @param {Reader<T>} read
 * @returns {Reader<T | null>}
 */
export function optional(read) {
  return (value, at) => (value === null || value === undefined ? null : read(value, at));
}

/**
 * @template T
 * @param {Reader<T>} read
 * @returns {Reader<readonly T[]>}
 */
export function list(read) {
  return (value, at) => {
    if (!Array.isArray(value)) throw mismatch(at);
    return value.map((element, index) => read(element, `${at}[${index}]`));
  };
}

/**
 * An object whose names are data.
 * @template T
 * @param {Reader<T>} read
 * @returns {Reader<ReadonlyMap<string, T>>}
 */
export function mapOf(read) {
  return (value, at) =>
    new Map(Object.entries(members(value, at)).map(([name, member]) => [name, read(member, `${at}.${name}`)]));
}

/**
 * An object with these members; others are left out.
 * @template {Readonly<Record<string, Reader<unknown>>>} M
 * @param {M} readers
 * @returns {Reader<{ readonly [K in keyof M]: ReturnType<M[K]> }>}
 */
export function shape(readers) {
  return (value, at) => {
    const given = members(value, at);
    /** @type {Record<string, unknown>} */
    const shaped = {};
    for (const [name, read] of Object.entries(readers)) shaped[name] = read(given[name], `${at}.${name}`);
    if (!isShaped(readers, shaped)) throw mismatch(at);
    return shaped;
  };
}

/**
 * Whether there is a member for each reader; the readers have checked what is in them.
 * @template {Readonly<Record<string, Reader<unknown>>>} M
 * @param {M} readers
 * @param {Record<string, unknown>} shaped
 * @returns {shaped is { readonly [K in keyof M]: ReturnType<M[K]> }}
 */
function isShaped(readers, shaped) {
  return Object.keys(readers).every((name) => Object.hasOwn(shaped, name));
}

/**
 * @param {unknown} value
 * @param {string} at
 * @returns {Readonly<Record<string, unknown>>}
 */
function members(value, at) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw mismatch(at);
  return { ...value };
}
