/** Reading of what the gateway answers: of unknown shape until it has passed here. Pure. */

/**
 * @template T
 * @typedef {(value: unknown, at: string) => T} Reader
 */

/** The answer is not what this page knows: its gateway is of another version, or something in between answered. */
export class ShapeError extends Error {
  /**
   * @param {string} at Where in the answer.
   * @param {string} expected
   */
  constructor(at, expected) {
    super(
      `The answer is not as this page expects it: ${at} is not ${expected}. Load the page again; the gateway may have been updated.`,
    );
    this.name = 'ShapeError';
  }
}

/** @type {Reader<string>} */
export function text(value, at) {
  if (typeof value !== 'string') throw new ShapeError(at, 'a text');
  return value;
}

/** @type {Reader<number>} */
export function number(value, at) {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new ShapeError(at, 'a number');
  return value;
}

/** @type {Reader<boolean>} */
export function flag(value, at) {
  if (typeof value !== 'boolean') throw new ShapeError(at, 'true or false');
  return value;
}

/** A time in ISO 8601, as Unix milliseconds.
 * @type {Reader<number>}
 */
export function time(value, at) {
  const ms = Date.parse(text(value, at));
  if (Number.isNaN(ms)) throw new ShapeError(at, 'a time');
  return ms;
}

/** @type {Reader<unknown>} */
export function anything(value) {
  return value;
}

/**
 * @template T
 * @param {Reader<T>} read
 * @returns {Reader<T | null>} Null also where the member is missing: a gateway that is older may not have it yet.
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
    if (!Array.isArray(value)) throw new ShapeError(at, 'a list');
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
 * @template {Readonly<Record<string, Reader<unknown>>>} M
 * @param {M} readers
 * @returns {Reader<{ readonly [K in keyof M]: ReturnType<M[K]> }>}
 */
export function shape(readers) {
  return (value, at) => {
    const given = members(value, at);
    const shaped = Object.fromEntries(
      Object.entries(readers).map(([name, read]) => [name, read(given[name], `${at}.${name}`)]),
    );
    if (!isRead(readers, shaped)) throw new ShapeError(at, 'whole');
    return shaped;
  };
}

/**
 * Whether each member is what its reader returned: there is one a reader, and nothing else put any there.
 * @template {Readonly<Record<string, Reader<unknown>>>} M
 * @param {M} readers
 * @param {object} shaped
 * @returns {shaped is { readonly [K in keyof M]: ReturnType<M[K]> }}
 */
function isRead(readers, shaped) {
  return Object.keys(readers).every((name) => Object.hasOwn(shaped, name));
}

/**
 * @param {unknown} value
 * @param {string} at
 * @returns {Readonly<Record<string, unknown>>}
 */
function members(value, at) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ShapeError(at, 'an object');
  return Object.fromEntries(Object.entries(value));
}
