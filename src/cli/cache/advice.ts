/** `evalgate cache advice`: what other TTLs would do, as a chart, and the line that sets the recommended one. */
import { type Command, Option } from 'commander';
import type { AnswerOf, ROUTES } from '../../operations/api.ts';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import { durationText, formatDuration } from '../../time/duration.ts';
import { MAX_TTL_MS } from '../../operations/bodies.ts';
import { adminAddress, adminCommand, callAdmin } from '../admin-client.ts';
import { durationBetween, integerBetween, print } from '../command.ts';
import { bar, columns, countText, percentText, rateText } from '../format.ts';

type Advice = AnswerOf<typeof ROUTES.advice>;
type ClassAdvice = Advice['classes'][number];

interface AdviceOptions {
  readonly class?: CacheClass;
  readonly budget?: number;
  readonly force?: boolean;
  readonly list?: number;
  readonly evaluation?: number;
}

export function adviceCommand(): Command {
  const fresh = durationBetween(0, MAX_TTL_MS);
  return adminCommand({
    name: 'advice',
    summary: 'predict hit ratio and store load with other cache times, and recommend one',
    details: [
      'From live traffic of all processes: one row per time; those that make no difference are left out. HIT RATIO is',
      'the share of reads that are served without waiting for the store, and STALE the share that are served past that time,',
      'while a newer one is fetched; STORE CALLS/S are those of the class, ALL CLASSES',
      'those of all classes with the other times in force; AGE P90 is the age that nine of ten answers would not exceed;',
      'OUTDATED is the share of answers, or of the records on lists, that would differ from those of the store. ± is how',
      'far chance may move a figure; a figure that is smaller than that has its upper bound, such as "to 4m". Extrapolated times are longer than traffic was observed: their figures are a guess.',
      'No time is recommended that takes the store to more than twice its calls, to more than upstream.maxRequestsPerSecond',
      'or beyond --budget, except with --force, and then with a WARNING. If announcements of changes allow a longer time, the last',
      'line of a class says so; --json has their figures for each time, as `announced`.',
    ].join(' '),
    examples: [
      'evalgate cache advice --class list',
      'evalgate cache advice --budget 10',
      'evalgate cache advice --class evaluation --list 2m',
      "evalgate cache advice --json | jq '.classes[].recommendation'",
    ],
  })
    .addOption(new Option('--class <class>', 'only this class of answers').choices(CACHE_CLASSES))
    .option('--budget <calls>', 'how many calls a second the store may get', integerBetween(1, 1_000_000))
    .option('--list <duration>', 'as if this fresh time of lists were in force', fresh)
    .option('--evaluation <duration>', 'as if this fresh time of evaluations were in force', fresh)
    .option('--force', 'also recommend times that make the store work harder than it may')
    .action(async ({ class: wanted, ...options }: AdviceOptions, command: Command) => {
      const advice = await callAdmin(command, (routes) => routes.advice, { query: queryOf(options) });
      const classes = advice.classes.filter((one) => wanted === undefined || one.class === wanted);
      const { base, isGiven } = adminAddress(command);
      // The line that applies the advice reaches the same gateway.
      const adminOption = isGiven ? ` --admin ${base}` : '';
      const source = advice.processes === 1 ? 'one process' : `${advice.processes} processes`;
      const idle = classes.filter(({ curve }) => curve.length === 0).map((one) => one.class);
      const charts = classes.filter(({ curve }) => curve.length > 0).map((one) => classText(one, source, adminOption));
      if (charts.length > 0) charts.push(loadText(advice.load));
      const hint = charts.length > 0 ? ['`evalgate cache advice --help` explains the columns.'] : [];
      if (idle.length > 0) charts.push(`No reads yet: ${idle.join(', ')}.`);
      charts.push(...hint);
      print(command, { ...advice, classes }, charts.join('\n\n'));
    });
}

function queryOf({ budget, force = false, list, evaluation }: AdviceOptions): URLSearchParams {
  const query = new URLSearchParams(force ? { force: 'true' } : {});
  if (budget !== undefined) query.set('budget', String(budget));
  if (list !== undefined) query.set('list', formatDuration(list));
  if (evaluation !== undefined) query.set('evaluation', formatDuration(evaluation));
  return query;
}

function loadText({ limitRps, limit, warning, ...load }: Advice['load']): string {
  const now = `${rateText(load.upstreamRps)} ±${rateText(load.upstreamRpsError)} store calls/s with the times in force`;
  const advised = `${rateText(load.recommendedRps)} ±${rateText(load.recommendedRpsError)} with all recommendations`;
  const text = `All classes together: ${now}, ${advised}, at most ${rateText(limitRps)} (${limit}).`;
  return [text, ...(warning === null ? [] : [warning])].join('\n');
}

/** A larger difference between the predicted and the measured hit ratio is pointed out. */
const DOUBTFUL_DIFFERENCE = 0.05;

function classText(advice: ClassAdvice, source: string, adminOption: string): string {
  const { class: cacheClass, reads, since, includesStart, measured, current, staleness, recommendation } = advice;
  const lines = [`${cacheClass}: ${countText(reads, 'read')} in ${source}${since === null ? '' : ` since ${since}`}`];
  if (includesStart) {
    lines.push(
      'Some of these reads are of the start, when nothing was cached: the first read of a record is a miss with any time.',
    );
  }
  if (measured !== null) {
    lines.push(
      `Measured with the times in force: hit ratio ${percentText(measured.hitRatio)}, ${rateText(measured.upstreamRps)} store calls/s`,
    );
  }
  lines.push(...chart(advice));
  if (advice.curve.every(({ outdatedRatio }) => outdatedRatio === null)) lines.push(NOT_COMPARED);
  if (current !== null && measured !== null && Math.abs(current.hitRatio - measured.hitRatio) >= DOUBTFUL_DIFFERENCE) {
    lines.push(
      `For the time in force the prediction is a hit ratio of ${percentText(current.hitRatio)}, and ${percentText(measured.hitRatio)} was measured: there were too few reads to compare, a time was changed meanwhile, something was purged, or copies were evicted. Trust the differences between rows more than their values.`,
    );
  }
  if (staleness !== null) lines.push(staleness);
  lines.push(...changesText(advice.changes));
  const { freshMs, why, warning } = recommendation;
  lines.push(why);
  if (warning !== null) lines.push(warning);
  if (freshMs !== null && freshMs !== current?.freshMs) {
    const set = `evalgate cache ttl set ${cacheClass} --fresh ${formatDuration(freshMs)} --for 1h${adminOption}`;
    lines.push(`To apply it for an hour, or without --for until it is reset: ${set}`);
  }
  if (advice.announcements.why !== null) lines.push(advice.announcements.why);
  return lines.join('\n');
}

/** Said if no row has a figure for OUTDATED. */
const NOT_COMPARED = 'OUTDATED is not known yet: too few copies have been compared with a newer answer of the store.';

/** How fast records change, by how long they were unchanged. */
function changesText(changes: ClassAdvice['changes']): readonly string[] {
  if (changes.length === 0) return [];
  const bands = changes.map(({ unchangedFromMs, unchangedToMs, withinMs, changedRatio, changedRatioError }) => {
    const band =
      unchangedToMs === null
        ? `more than ${formatDuration(unchangedFromMs)}`
        : `up to ${formatDuration(unchangedToMs)}`;
    if (changedRatioError > 1) return `${band}: too few reads to tell`;
    return `${band}: ${percentText(changedRatio)} ${plusMinus(changedRatioError)} in ${formatDuration(withinMs)}`;
  });
  return [`Records change, by how long they were unchanged: ${bands.join('; ')}.`];
}

/** In points of a hundred: a share is never further off. */
function plusMinus(error: number): string {
  return `±${(100 * Math.min(1, error)).toFixed(1)}`;
}

/** An amount is never below 0: if chance may move it by more than itself, its upper bound says more. */
function margin(amount: number, error: number, text: (amount: number) => string): string {
  return error > amount ? `to ${text(amount + error)}` : `±${text(error)}`;
}

/** By lines. */
function chart({ curve, current, recommendation }: ClassAdvice): readonly string[] {
  const rows = curve.map((point) => {
    const { freshMs, hitRatio, upstreamRps, ageP90Ms, outdatedRatio, extrapolated } = point;
    const marks = [
      ...(freshMs === current?.freshMs ? ['now'] : []),
      ...(freshMs === recommendation.freshMs ? ['recommended'] : []),
    ];
    const prediction = [
      bar(hitRatio),
      percentText(hitRatio),
      plusMinus(point.hitRatioError),
      percentText(point.staleRatio),
      rateText(upstreamRps),
      margin(upstreamRps, point.upstreamRpsError, rateText),
      rateText(point.totalRps),
      margin(point.totalRps, point.totalRpsError, rateText),
      durationText(ageP90Ms),
      margin(ageP90Ms, point.ageP90MsError, durationText),
      outdatedRatio === null ? null : percentText(outdatedRatio),
      point.outdatedRatioError === null ? '' : plusMinus(point.outdatedRatioError),
    ];
    const notes = [...marks, ...(extrapolated ? ['extrapolated'] : [])].join(', ');
    return { prediction, isMarked: marks.length > 0, cells: [formatDuration(freshMs), ...prediction, notes] };
  });
  // TTLs with the same prediction share one row, that of the shortest; those in force or recommended have their own.
  const shown = rows.filter(
    ({ prediction, isMarked }, index) => isMarked || prediction.join() !== rows[index - 1]?.prediction.join(),
  );
  const figures = ['STORE CALLS/S', 'ALL CLASSES', 'AGE P90', 'OUTDATED'].flatMap((name) => [name, '']);
  const heading = ['TIME', 'HIT RATIO', '', '', 'STALE', ...figures, ''];
  return columns([heading, ...shown.map(({ cells }) => cells)]).split('\n');
}
