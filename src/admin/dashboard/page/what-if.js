/** What if answers of a class stayed fresh for another time: what is predicted for it, beside what is now, and setting it. */
import { h } from './dom.js';
import { duration, percent, rate } from './format.js';
import { panel } from './panel.js';
import { predict } from './prediction.js';
import { CLASSES } from './shapes.js';
import { applyFresh, resetTimes } from './times-change.js';
import { whatIfView } from './what-if-view.js';

/** @typedef {import('./shapes.js').ClassAdvice} ClassAdvice */
/** @typedef {import('./shapes.js').ClassTimes} ClassTimes */

/**
 * @typedef {object} Sources
 * @property {import('./resource.js').Resource<ReturnType<typeof import('./shapes.js').readAdvice>>} advice
 * @property {import('./resource.js').Resource<{ readonly classes: readonly ClassTimes[] }>} times
 */

/**
 * @param {import('./times-change.js').Means} means
 * @param {Sources} sources
 */
export function whatIfPanel(means, { advice, times }) {
  /** @type {{ chosenClass: string | null, chosenMs: number | null }} Null: what has most reads; the time in force. */
  const state = { chosenClass: null, chosenMs: null };
  const view = whatIfView({
    chooseClass: (cacheClass) => change({ chosenClass: cacheClass, chosenMs: null }),
    chooseMs: (ms) => change({ ...state, chosenMs: ms }),
    chooseIndex: (index) => change({ ...state, chosenMs: adviceOf()?.curve[index]?.freshMs ?? null }),
    apply: () =>
      void withChoice(async ({ timesNow, chosenMs, one }) => {
        const isDone = await applyFresh(means, {
          times: timesNow,
          freshMs: chosenMs,
          expected: expectedOf(one, chosenMs),
        });
        if (isDone) change({ ...state, chosenMs: null });
      }),
    reset: () =>
      void withChoice(async ({ timesNow }) => {
        const isDone = await resetTimes(means, timesNow);
        if (isDone) change({ ...state, chosenMs: null });
      }),
  });
  const adviceOf = () => advice.value?.classes.find((one) => one.class === classNow()) ?? null;
  const classNow = () => state.chosenClass ?? busiest(advice.value?.classes ?? []);
  const timesOf = () => times.value?.classes.find((one) => one.class === classNow()) ?? null;
  const change = (/** @type {typeof state} */ to) => {
    Object.assign(state, to);
    draw();
  };
  const withChoice = async (
    /** @type {(choice: { timesNow: ClassTimes, chosenMs: number, one: ClassAdvice }) => Promise<void>} */ run,
  ) => {
    const [one, timesNow] = [adviceOf(), timesOf()];
    if (one !== null && timesNow !== null) await run({ one, timesNow, chosenMs: state.chosenMs ?? timesNow.freshMs });
  };
  const draw = () => {
    const [one, timesNow] = [adviceOf(), timesOf()];
    if (one === null || timesNow === null) return;
    view.draw({ one, timesNow, chosenMs: state.chosenMs ?? timesNow.freshMs });
  };
  return panel(
    {
      id: 'what-if',
      title: 'What if',
      hint: 'What hit ratio, store load and age would be if answers stayed fresh for another time, worked out from the reads of this moment.',
      sources: [advice, times],
      draw,
    },
    view.element,
  );
}

/**
 * What is read most: there a time matters most.
 * @param {readonly ClassAdvice[]} classes
 */
function busiest(classes) {
  const most = classes.reduce(
    (/** @type {ClassAdvice | null} */ best, one) => (best === null || one.reads > best.reads ? one : best),
    null,
  );
  return most === null || most.reads === 0 ? CLASSES[0] : most.class;
}

/**
 * @param {ClassAdvice} one
 * @param {number} chosenMs
 */
function expectedOf(one, chosenMs) {
  const prediction = predict(one.curve, chosenMs);
  if (one.current === null || prediction === null)
    return [h('p', {}, 'What it would change is not known: nothing near this time was tried.')];
  const { point } = prediction;
  return [
    h(
      'p',
      {},
      `Predicted: hit ratio ${percent(one.current.hitRatio)} → ${percent(point.hitRatio)}, store calls ${rate(one.current.upstreamRps)} → ${rate(point.upstreamRps)}, age p90 ${duration(one.current.ageP90Ms)} → ${duration(point.ageP90Ms)}.`,
    ),
  ];
}
