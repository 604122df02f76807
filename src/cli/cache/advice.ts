/** `evalgate cache advice`: what other TTLs would do, as a chart, and the line that sets the recommended one. */
import { type Command, Option } from 'commander';
import { type AnswerOf, ROUTES } from '../../operations/api.ts';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import { durationText, formatDuration } from '../../time/duration.ts';
import { adminAddress, adminCommand, callAdmin } from '../admin-client.ts';
import { print } from '../command.ts';
import { bar, columns, countText, percentText, rateText } from '../format.ts';

type ClassAdvice = AnswerOf<typeof ROUTES.advice>['classes'][number];

export function adviceCommand(): Command {
  return adminCommand({
    name: 'advice',
    summary: 'predict hit ratio and store load with other cache times, and recommend one',
    details: [
      'From live traffic of all processes: one row per time; those that make no difference are left out. HIT RATIO is',
      'the share of reads that are served without waiting for the store, and ± how far chance may move it; AGE P90 is the',
      'age that nine of ten answers would not exceed; OUTDATED is the share of answers that would differ from those of',
      'the store, as far as refreshes have shown. Extrapolated times are longer than traffic was observed: their figures',
      'are a guess.',
    ].join(' '),
    examples: ['evalgate cache advice --class list', "evalgate cache advice --json | jq '.classes[].recommendation'"],
  })
    .addOption(new Option('--class <class>', 'only this class of answers').choices(CACHE_CLASSES))
    .action(async ({ class: wanted }: { class?: CacheClass }, command: Command) => {
      const advice = await callAdmin(command, ROUTES.advice);
      const classes = advice.classes.filter((one) => wanted === undefined || one.class === wanted);
      const { base, isGiven } = adminAddress(command);
      // The line that applies the advice reaches the same gateway.
      const adminOption = isGiven ? ` --admin ${base}` : '';
      const source = advice.processes === 1 ? 'one process' : `${advice.processes} processes`;
      const idle = classes.filter(({ curve }) => curve.length === 0).map((one) => one.class);
      const charts = classes.filter(({ curve }) => curve.length > 0).map((one) => classText(one, source, adminOption));
      if (idle.length > 0) charts.push(`No reads yet: ${idle.join(', ')}.`);
      print(command, { ...advice, classes }, charts.join('\n\n'));
    });
}

/** A larger difference between the predicted and the measured hit ratio is pointed out. */
const DOUBTFUL_DIFFERENCE = 0.05;

function classText(advice: ClassAdvice, source: string, adminOption: string): string {
  const { class: cacheClass, reads, since, measured, current, recommendation } = advice;
  const lines = [`${cacheClass}: ${countText(reads, 'read')} in ${source}${since === null ? '' : ` since ${since}`}`];
  if (measured !== null) {
    lines.push(
      `Measured with the times in force: hit ratio ${percentText(measured.hitRatio)}, ${rateText(measured.upstreamRps)} store calls/s`,
    );
  }
  lines.push(...chart(advice));
  if (current !== null && measured !== null && Math.abs(current.hitRatio - measured.hitRatio) >= DOUBTFUL_DIFFERENCE) {
    lines.push(
      `For the time in force the prediction is a hit ratio of ${percentText(current.hitRatio)}, and ${percentText(measured.hitRatio)} was measured: a time was changed meanwhile, something was purged, or copies were evicted. Trust the differences between rows more than their values.`,
    );
  }
  const { freshMs, why } = recommendation;
  lines.push(why);
  if (freshMs !== null && freshMs !== current?.freshMs) {
    const set = `evalgate cache ttl set ${cacheClass} --fresh ${formatDuration(freshMs)} --for 1h${adminOption}`;
    lines.push(`To apply it for an hour, or without --for until it is reset: ${set}`);
  }
  return lines.join('\n');
}

/** By lines. */
function chart({ curve, current, recommendation }: ClassAdvice): readonly string[] {
  const rows = curve.map(({ freshMs, hitRatio, hitRatioError, upstreamRps, ageP90Ms, outdatedRatio, extrapolated }) => {
    const marks = [
      ...(freshMs === current?.freshMs ? ['now'] : []),
      ...(freshMs === recommendation.freshMs ? ['recommended'] : []),
    ];
    const prediction = [
      bar(hitRatio),
      percentText(hitRatio),
      `±${(100 * hitRatioError).toFixed(1)}`,
      rateText(upstreamRps),
      durationText(ageP90Ms),
      outdatedRatio === null ? null : percentText(outdatedRatio),
    ];
    const notes = [...marks, ...(extrapolated ? ['extrapolated'] : [])].join(', ');
    return { prediction, isMarked: marks.length > 0, cells: [formatDuration(freshMs), ...prediction, notes] };
  });
  // TTLs with the same prediction share one row, that of the shortest; those in force or recommended have their own.
  const shown = rows.filter(
    ({ prediction, isMarked }, index) => isMarked || prediction.join() !== rows[index - 1]?.prediction.join(),
  );
  const heading = ['TIME', 'HIT RATIO', '', '', 'STORE CALLS/S', 'AGE P90', 'OUTDATED', ''];
  return columns([heading, ...shown.map(({ cells }) => cells)]).split('\n');
}
