/** Trials of a time: those that run, and those that are over. */
import { announce, h, keep } from './dom.js';
import { panel } from './panel.js';
import { trialCard } from './trial-card.js';
import { adoptTrial, stopTrial } from './trial-change.js';
import { overTrials } from './trials-over.js';

/** @typedef {import('./times-change.js').Means} Means */
/** @typedef {import('./trial-shapes.js').Trial} Trial */

/**
 * @param {Means} means
 * @param {import('./resource.js').Resource<{ readonly trials: readonly Trial[] }>} trials
 */
export function trialsPanel(means, trials) {
  const running = runningTrials(means);
  const over = overTrials(means);
  const none = h(
    'p',
    { class: 'empty' },
    'No trial runs. One is started from ',
    h('a', { href: '#what-if' }, 'What if'),
    ' or ',
    h('a', { href: '#times' }, 'Times'),
    '.',
  );
  const draw = () => {
    const all = trials.value?.trials ?? [];
    const now = all.filter(({ state }) => state === 'running');
    none.hidden = now.length > 0;
    running.show(now);
    over.show(all);
  };
  trials.subscribe(tellOfEnds(trials));
  setInterval(() => running.show((trials.value?.trials ?? []).filter(({ state }) => state === 'running')), 1000);
  return panel(
    {
      id: 'trials',
      title: 'Trials',
      hint: 'Another fresh time for a share of the keys of a class, measured beside the rest before it rules for all.',
      sources: [trials],
      draw,
      actions: [over.more],
    },
    running.element,
    none,
    over.element,
  );
}

/** @param {Means} means */
function runningTrials(means) {
  /** @type {Map<string, { readonly card: ReturnType<typeof trialCard>, trial: Trial }>} By id. */
  const cards = new Map();
  const element = h('div', { class: 'trials' });
  const make = (/** @type {Trial} */ first) => {
    const shown = {
      trial: first,
      card: trialCard(first, {
        adopt: () => void adoptTrial(means, shown.trial),
        stop: () => void stopTrial(means, shown.trial),
      }),
    };
    cards.set(first.id, shown);
    return shown.card.element;
  };
  return {
    element,
    /** @param {readonly Trial[]} trials */
    show: (trials) => {
      // A card stays as long as its trial: figures change in it each second, and nothing under anybody's finger.
      keep(element, trials, { key: ({ id }) => id, make, version: () => '' });
      const ids = new Set(trials.map(({ id }) => id));
      for (const id of cards.keys()) if (!ids.has(id)) cards.delete(id);
      const nowMs = Date.now();
      for (const trial of trials) {
        const shown = cards.get(trial.id);
        if (shown === undefined) continue;
        shown.trial = trial;
        shown.card.show(trial, nowMs);
      }
    },
  };
}

/**
 * Tells those who don't see the page of a trial that is over, once.
 * @param {import('./resource.js').Resource<{ readonly trials: readonly Trial[] }>} trials
 */
function tellOfEnds(trials) {
  /** @type {ReadonlySet<string>} */
  let ran = new Set();
  return () => {
    const all = trials.value?.trials ?? [];
    for (const { id, class: cacheClass, state, reason } of all) {
      if (state === 'rolled-back' && ran.has(id))
        announce(`The trial of ${cacheClass} was rolled back. ${reason ?? ''}`);
      if (state === 'ended' && ran.has(id)) announce(`The trial of ${cacheClass} has ended.`);
    }
    ran = new Set(all.filter(({ state }) => state === 'running').map(({ id }) => id));
  };
}
