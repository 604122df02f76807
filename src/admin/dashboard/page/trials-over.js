/** The trials of a time that are over: what came of each, and why one was rolled back. */
import { h, keep, say } from './dom.js';
import { count, moment, percent } from './format.js';
import { icon } from './icons.js';
import { adoptTrial } from './trial-change.js';
import { perRead, shareWords, stateWords } from './trial-words.js';

/** @typedef {import('./trial-shapes.js').Trial} Trial */

const SHOWN_FIRST = 5;
const HEAD = ['Class', 'Fresh', 'Share', 'Came to', 'Hit ratio', 'Store calls per read', 'Why', ''];

/** @param {import('./times-change.js').Means} means */
export function overTrials(means) {
  let isWhole = false;
  /** @type {readonly Trial[]} */
  let all = [];
  const body = h('tbody');
  const more = h('button', { type: 'button', class: 'small', hidden: true });
  const element = h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Trials that are over', hidden: true },
    h(
      'table',
      { class: 'dense' },
      h('caption', {}, 'Over: what was measured, beside the rest of the keys'),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ...HEAD.map((name) =>
            h('th', { scope: 'col' }, name === '' ? h('span', { class: 'hidden' }, 'Actions') : name),
          ),
        ),
      ),
      body,
    ),
  );
  const draw = () => {
    const over = all.filter(({ state }) => state !== 'running');
    element.hidden = over.length === 0;
    more.hidden = over.length <= SHOWN_FIRST;
    say(more, isWhole ? 'Show the newest only' : `Show all ${count(over.length)} that are over`);
    const rows = (isWhole ? over : over.slice(0, SHOWN_FIRST)).map((trial) => ({
      trial,
      canAdopt: isLast(trial, all),
    }));
    keep(body, rows, {
      key: ({ trial }) => trial.id,
      make: ({ trial, canAdopt }) => overRow(trial, canAdopt ? () => void adoptTrial(means, trial) : null),
    });
  };
  more.addEventListener('click', () => {
    isWhole = !isWhole;
    draw();
  });
  return {
    element,
    more,
    /** @param {readonly Trial[]} trials All, those that run first. */
    show: (trials) => {
      all = trials;
      draw();
    },
  };
}

/**
 * Whether a trial has ended by its time, and is the last of its class: that one may still be adopted.
 * @param {Trial} trial
 * @param {readonly Trial[]} all Newest first, those that run before all.
 */
function isLast(trial, all) {
  return trial.state === 'ended' && all.find((one) => one.class === trial.class) === trial;
}

/** @type {ReadonlyMap<string, readonly ['done' | 'warning' | 'pause' | 'clock', string]>} */
const SIGNS = new Map([
  ['adopted', ['done', 'good']],
  ['rolled-back', ['warning', 'warn']],
  ['stopped', ['pause', '']],
]);

/**
 * @param {Trial} trial
 * @param {(() => void) | null} adopt
 */
function overRow({ class: cacheClass, fresh, share, state, reason, endedAt, arms }, adopt) {
  const [sign, kind] = SIGNS.get(state) ?? ['clock', ''];
  const when = endedAt === null ? '' : ` ${moment(endedAt, Date.now())}`;
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, cacheClass),
    h('td', {}, `${fresh} beside ${arms.control.fresh}`),
    h('td', {}, shareWords(share)),
    h('td', { class: 'member-status', 'data-kind': kind }, icon(sign), `${stateWords(state)}${when}`),
    h('td', {}, `${percent(arms.trial.hitRatio)} beside ${percent(arms.control.hitRatio)}`),
    h('td', {}, `${perRead(arms.trial.storeCallsPerRead)} beside ${perRead(arms.control.storeCallsPerRead)}`),
    h('td', { class: 'wrap' }, reason ?? '–'),
    h(
      'td',
      { class: 'row-actions' },
      adopt === null
        ? null
        : h(
            'button',
            {
              type: 'button',
              class: 'small',
              'data-focus': 'adopt',
              'aria-label': `Adopt ${fresh} for ${cacheClass}`,
              onclick: adopt,
            },
            'Adopt …',
          ),
    ),
  );
}
