/** The effect of another TTL, predicted from live reads, beside what is in force; and setting it. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { LineChart, roundTop } from './chart.js';
import { count, decimal, duration, moment, parseDuration, percent, rate, written } from './format.js';
import { CLASSES } from './declared.js';
import { asIf, live } from './live.js';
import { differences, distinct, MEASURES, positionOf, predict, texts, warningOf } from './prediction.js';
import { useStore } from './store.js';
import { ChangeTtl } from './ttl.js';
import { button, SelectField, table, TextField, useDialog, useMay } from './ui.js';

/** @typedef {import('./api.js').Answer<'advice'>} Advised */
/** @typedef {Advised['classes'][number]} ClassAdvice */
/** @typedef {ClassAdvice['curve'][number]} CurvePoint */
/** @typedef {import('./prediction.js').Prediction} Predicted */

/**
 * Lists bring evaluations along, so each of the two has a second slider, for the time of the other.
 * @type {Readonly<Record<string, string>>}
 */
const BESIDE = { list: 'evaluation', evaluation: 'list' };

/** @param {{ readonly data: Advised }} props */
export function WhatIf({ data: { load, classes } }) {
  // The class with most reads comes first, and stays chosen when another one is read more.
  const [name, setName] = useState(() => classes.toSorted((a, b) => b.reads - a.reads)[0]?.class ?? '');
  const advice = classes.find((one) => one.class === name);
  const beside = classes.find((one) => one.class === BESIDE[name]) ?? null;
  const choose = (/** @type {string} */ chosen) => {
    setName(chosen);
    suppose({});
  };
  const options = CLASSES.map((one) => [one, one]);
  return html`<p class="hint">What another fresh TTL would bring, predicted from the reads of the last day.</p>
    <${SelectField} label="Class" value=${name} options=${options} onChoice=${choose} />
    ${load.warning !== null && html`<p role="alert">${load.warning}</p>`}
    ${
      advice === undefined || advice.curve.length < 2
        ? html`<p class="empty">No predictions for ${name} yet. ${advice?.recommendation.why}</p>`
        : html`<${Prediction} key=${name} advice=${advice} load=${load} beside=${beside} />`
    }`;
}

/**
 * Asks for predictions as if these times were in force.
 * @param {Record<string, string>} times
 */
function suppose(times) {
  asIf.set(times);
  void live.advice.refresh();
}

/** @param {{ readonly advice: ClassAdvice, readonly load: Advised['load'], readonly beside: ClassAdvice | null }} props */
function Prediction({ advice, load, beside }) {
  const { curve, current, recommendation } = advice;
  const ttl = useStore(live.ttls).data?.find((one) => one.class === advice.class) ?? null;
  const inForce = ttl?.fresh ?? written(current?.freshMs ?? 0);
  // Null: the TTL in force, also when that changes.
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const { dialog, open } = useDialog();
  const mayChange = useMay()('setTtl');
  const chosenMs = parseDuration(typed ?? inForce);
  const point = chosenMs === null ? null : predict(curve, chosenMs);
  const place = chosenMs === null ? null : positionOf(curve, chosenMs);
  const warning = warningOf(load, point);
  const isChange = ttl !== null && chosenMs !== null && chosenMs !== ttl.freshMs;
  const ask = () => {
    const note = `${warning} ${noteOf(current, point)}`.trim();
    const proposed = { ttl, fresh: typed, note, word: warning && 'force' };
    open((close) => html`<${ChangeTtl} ...${proposed} close=${close} />`);
  };
  const label = isChange ? `Set to ${written(chosenMs)} …` : 'In force';
  return html`<${Charts} advice=${advice} place=${place} />
    <${Slider} name="Fresh TTL" curve=${curve} place=${place} point=${point} choose=${setTyped} />
    ${beside !== null && beside.curve.length > 1 && html`<${Beside} advice=${beside} />`}
    ${warning !== '' && html`<p role="alert">${warning}</p>`}
    <div class="halves">
      <div class="view">
        <${TextField} label="Fresh for" value=${typed ?? inForce} onText=${setTyped} help=${placeText(curve, place)} />
        <${Advice} recommendation=${recommendation} chosenMs=${chosenMs} choose=${setTyped} />
        ${mayChange && html`<div>${button(label, ask, { kind: 'primary', isOff: !isChange })}</div>`}
      </div>
      ${comparison(current, point, chosenMs)}
    </div>
    ${advice.announcements.why !== null && html`<p>${advice.announcements.why}</p>`}
    ${advice.staleness !== null && html`<p>${plain(advice.staleness)}</p>`}
    <p class="hint">${basisOf(advice)}</p>
    <details>
      <summary>All predictions as a table</summary>
      ${table('Predictions', ['Fresh for', 'Basis', ...MEASURES.map(({ name }) => `#${name}`)], distinct(curve))}
    </details>
    ${dialog}`;
}

/**
 * The time of the other class: everything else is predicted as if it were in force.
 * @param {{ readonly advice: ClassAdvice }} props
 */
function Beside({ advice: { class: name, curve, current } }) {
  const isSupposed = useStore(asIf)[name] !== undefined;
  const choose = (/** @type {string} */ fresh) => suppose({ [name]: fresh });
  const place = positionOf(curve, current?.freshMs ?? 0);
  return html`<p class="hint">
      With ${name} fresh
      for${' '}<strong>${duration(current?.freshMs ?? 0)}</strong>${isSupposed ? ', if it were set. ' : ', as in force. '}
      ${isSupposed && button('As in force', () => suppose({}))}
    </p>
    <${Slider} name=${`TTL supposed for ${name}`} curve=${curve} place=${place} point=${current} choose=${choose} />`;
}

/** @param {{ readonly recommendation: ClassAdvice['recommendation'], readonly chosenMs: number | null, readonly choose: (typed: string) => void }} props */
function Advice({ recommendation: { freshMs, why }, chosenMs, choose }) {
  if (freshMs === null) return html`<p>No recommendation. ${why}</p>`;
  const advised = written(freshMs);
  return html`<div>
    <p>Recommended: <strong>${advised}</strong>. ${why}</p>
    ${freshMs !== chosenMs && button(`Try ${advised}`, () => choose(advised))}
  </div>`;
}

/**
 * Two charts over the TTLs of the curve, which stand at equal distances as on the slider.
 * @param {{ readonly advice: ClassAdvice, readonly place: number | null }} props
 */
function Charts({ advice: { curve, current, recommendation }, place }) {
  const ticks = curve.flatMap(({ freshMs }, at) => (at % 2 === 0 ? [{ at, text: duration(freshMs) }] : []));
  const marks = [
    { kind: 'in-force', at: positionOf(curve, current?.freshMs ?? 0), text: 'in force' },
    { kind: 'advised', at: positionOf(curve, recommendation.freshMs ?? 0), text: 'recommended' },
    { kind: 'chosen', at: place, text: 'chosen' },
  ].flatMap(({ at, ...mark }) => (at === null ? [] : [{ ...mark, at }]));
  const format = (/** @type {number} */ at) => duration(curve[Math.round(at)]?.freshMs ?? 0);
  const places = curve.map((_, at) => at);
  const common = { x: { places, from: 0, to: curve.length - 1, ticks, format }, marks, isAlone: true };
  const calls = [
    ...linesOf(curve, ({ upstreamRps }) => upstreamRps),
    ...announcedOf(curve, ({ upstreamRps }) => upstreamRps),
  ];
  const outdated = [
    ...linesOf(curve, ({ outdatedRatio }) => outdatedRatio),
    ...announcedOf(curve, ({ outdatedRatio }) => outdatedRatio),
  ];
  const isKnown = curve.some(({ outdatedRatio }) => outdatedRatio !== null);
  const second = curve.some(({ announced }) => announced !== null) ? '; grey curve: if changes are announced' : '';
  const title = isKnown ? 'Outdated answers' : 'Outdated answers: not known until more refreshes have been seen';
  return html`<div class="charts">
      <${LineChart} title="Store calls" lines=${calls} y=${{ top: roundTop(calls), format: rate }} ...${common} />
      <${LineChart}
        title=${title}
        lines=${outdated}
        y=${{ top: Math.min(1, roundTop(outdated)), format: percent }}
        ...${common}
      />
    </div>
    <p class="hint">Thick line: chosen; thin: in force; dotted: recommended; broken curve: extrapolated${second}.</p>`;
}

/**
 * The observed part, and the rest as a broken line; they meet in the last point that was observed.
 * @param {readonly CurvePoint[]} curve
 * @param {(point: CurvePoint) => number | null} valueOf
 */
function linesOf(curve, valueOf) {
  const valuesOf = (/** @type {(index: number) => boolean} */ isIn) =>
    curve.map((point, at) => (isIn(at) ? valueOf(point) : null));
  const isGuess = (/** @type {number} */ at) => curve[at]?.extrapolated === true;
  return [
    { label: 'predicted', colour: 'accent', values: valuesOf((at) => !isGuess(at)) },
    {
      label: 'extrapolated',
      colour: 'accent',
      dash: [4, 4],
      values: valuesOf((at) => isGuess(at) || isGuess(at + 1)),
    },
  ];
}

/**
 * The second curve, with announcements, if anything is known of it.
 * @param {readonly CurvePoint[]} curve
 * @param {(point: NonNullable<CurvePoint['announced']>) => number} valueOf
 */
function announcedOf(curve, valueOf) {
  if (curve.every(({ announced }) => announced === null)) return [];
  const values = curve.map(({ announced }) => announced && valueOf(announced));
  return [{ label: 'if changes are announced', colour: 'ink-2', dash: [2, 3], values }];
}

/** @param {{ readonly name: string, readonly curve: readonly CurvePoint[], readonly place: number | null, readonly point: Predicted | null, readonly choose: (fresh: string) => void }} props */
function Slider({ name, curve, place, point, choose }) {
  const onInput = (/** @type {{ currentTarget: HTMLInputElement }} */ event) =>
    choose(written(curve[Number(event.currentTarget.value)]?.freshMs ?? 0));
  const said = point === null ? 'not known' : `${duration(point.freshMs)}: ${named(texts(point))}`;
  const range = { type: 'range', min: 0, max: curve.length - 1, step: 1, value: Math.round(place ?? 0) };
  return html`<input class="slider" aria-label=${name} aria-valuetext=${said} ...${range} onInput=${onInput} />`;
}

/**
 * @param {Predicted | null} current
 * @param {Predicted | null} point
 * @param {number | null} chosenMs
 */
function comparison(current, point, chosenMs) {
  const [now, then] = [texts(current), texts(point)];
  const difference = differences(current, point);
  const rows = MEASURES.map(({ name }, at) => ({
    key: name,
    cells: [name, now[at], html`<strong>${then[at]}</strong>`, difference[at]],
  }));
  return table('In force and predicted', ['Measure', '#In force', `#At ${duration(chosenMs)}`, '#Difference'], rows);
}

/** @param {readonly CurvePoint[]} curve @param {number | null} place */
function placeText(curve, place) {
  const [first, last] = [curve[Math.floor(place ?? 0)], curve[Math.ceil(place ?? curve.length - 1)]];
  const between = `${duration(first?.freshMs ?? 0)} and ${duration(last?.freshMs ?? 0)}`;
  if (place === null) return `Predictions are for durations between ${between}.`;
  const origin = first === last ? '' : `Interpolated between ${between}.`;
  return last?.extrapolated === true ? `Extrapolated. ${origin}` : origin;
}

/** Without the marks of code, which a page shows as they are. @param {string} text */
function plain(text) {
  return text.replaceAll('`', '');
}

/** @param {ClassAdvice} advice */
function basisOf({ reads, since, includesStart, current, measured, outdatedLimit }) {
  const start = includesStart ? ' Some of them are of the start, when nothing was cached.' : '';
  const watched =
    since === null ? 'No reads were observed yet.' : `From ${count(reads)} reads since ${moment(since)}.${start}`;
  const error = `Chance alone may move predicted store calls per read by ${decimal(current?.storeCallsPerReadError ?? null)}.`;
  const limit = `Recommended TTLs keep outdated answers under ${percent(outdatedLimit)}.`;
  if (measured === null) return `${watched} ${error} ${limit}`;
  const perRead = decimal(measured.storeCallsPerRead);
  const real = `Measured: ${perRead} store calls per read, ${rate(measured.upstreamRps)}.`;
  return `${watched} ${real} ${error} ${limit}`;
}

/** @param {readonly string[]} shown One text for each measure. */
function named(shown) {
  return MEASURES.map(({ name }, at) => `${name} ${shown[at] ?? ''}`).join(', ');
}

/** @param {Predicted | null} current @param {Predicted | null} point */
function noteOf(current, point) {
  if (point === null) return 'The effect of this TTL is not known.';
  const [now, then] = [texts(current), texts(point)];
  return `Predicted: ${named(then.map((text, at) => (now[at] === text ? `${text} as now` : `${now[at] ?? ''} to ${text}`)))}.`;
}
