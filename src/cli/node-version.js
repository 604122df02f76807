/* Plain JavaScript, like the launcher that uses it. */

const OLDEST_MAJOR = 24;

/**
 * What to tell somebody whose Node.js cannot run the program; null where it can.
 * @param {string} version as in process.versions.node
 * @returns {string | null}
 */
export function tooOld(version) {
  if (Number.parseInt(version, 10) >= OLDEST_MAJOR) return null;
  return [
    `evalgate needs Node.js ${OLDEST_MAJOR} or newer, and this is ${version}.`,
    'It brings its own: run `npm ci` in its folder, without --ignore-scripts and --omit=dev,',
    'then start it with `npm start`, or a command with `npx evalgate ...`.',
  ].join('\n');
}
