/** `evalgate cache advice`: what other TTLs would do, as a chart, and the line that sets the recommended one. */
import { type Command, Option } from 'commander';
import { type AnswerOf, ROUTES } from '../../admin/api.ts';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import { formatDuration } from '../../duration.ts';
import { adminAddress, adminCommand, callAdmin } from '../admin-client.ts';
import { print } from '../command.ts';
import { bar, columns, percentText, printable, rateText, roughDuration } from '../format.ts';

type ClassAdvice = AnswerOf<typeof ROUTES.advice>['classes'][number];

export function adviceCommand(): Command {
  const command = adminCommand({
    name: 'advice',
    summary: 'show what other cache times would do to hit ratio and store load, and which to set',
    details: [
      'From live traffic, of all processes together: one row per time; those that make no difference are left out. HIT',
      'RATIO is the share of reads that are served without waiting for the store, and ± how far chance alone may move it; AGE P90 is how old nine of ten answers would be at most; OUTDATED is the share of answers that would differ',
      'from what the store has by then, as far as refreshes have shown.',
      'Extrapolated times are longer than traffic was observed: their figures are a guess.',
    ].join(' '),
    examples: ['evalgate cache advice --class list', "evalgate cache advice --json | jq '.classes[].recommendation'"],
  });
  return command
    .addOption(new Option('--class <class>', 'only this class of answers').choices(CACHE_CLASSES))
    .action(async () => {
      const { class: wanted } = command.opts<{ class?: CacheClass }>();
      const advice = await callAdmin(command, ROUTES.advice);
      const classes = advice.classes.filter((one) => wanted === undefined || one.class === wanted);
      const { base, isGiven } = adminAddress(command);
      const text = adviceText(advice.processes, classes, isGiven ? ` --admin ${base}` : '');
      print(command, { ...advice, classes }, text);
    });
}

/** `adminOption`: added to the line that applies the advice, so that it reaches the same gateway. */
function adviceText(processes: number, classes: readonly ClassAdvice[], adminOption: string): string {
  const read = classes.filter(({ curve }) => curve.length > 0);
  const idle = classes.filter(({ curve }) => curve.length === 0);
  const source = processes === 1 ? 'one process' : `${processes} processes`;
  return [
    ...read.map((advice) => classText(advice, source, adminOption)),
    ...(idle.length === 0 ? [] : [`Nothing was read yet of: ${printable(idle.map((one) => one.class).join(', '))}.`]),
  ].join('\n\n');
}

/** A larger difference between the predicted and the measured hit ratio is pointed out. */
const DOUBTFUL_DIFFERENCE = 0.05;

function classText(advice: ClassAdvice, source: string, adminOption: string): string {
  const { class: cacheClass, reads, since, measured, current, recommendation } = advice;
  const lines = [
    `${printable(cacheClass)}: ${reads} reads of ${source}${since === null ? '' : ` since ${printable(since)}`}`,
  ];
  if (measured !== null) {
    lines.push(
      `Measured with the times that were in force: hit ratio ${percentText(measured.hitRatio)}, ${rateText(measured.upstreamRps)} store calls/s`,
    );
  }
  lines.push(chart(advice));
  if (current !== null && measured !== null && Math.abs(current.hitRatio - measured.hitRatio) >= DOUBTFUL_DIFFERENCE) {
    lines.push(
      `For the time in force a hit ratio of ${percentText(current.hitRatio)} is worked out, and ${percentText(measured.hitRatio)} was measured: a time was changed meanwhile, something was purged, or copies had to make room. Go by the differences.`,
    );
  }
  const { freshMs, why } = recommendation;
  lines.push(printable(why));
  if (freshMs !== null && freshMs !== current?.freshMs) {
    lines.push(
      `To apply it: evalgate cache ttl set ${printable(cacheClass)} --fresh ${formatDuration(freshMs)}${adminOption}`,
    );
  }
  return lines.join('\n');
}

function chart({ curve, current, recommendation }: ClassAdvice): string {
  const rows = curve.map(({ freshMs, hitRatio, hitRatioError, upstreamRps, ageP90Ms, outdatedRatio, extrapolated }) => {
    const isCurrent = freshMs === current?.freshMs;
    const isRecommended = freshMs === recommendation.freshMs;
    const marks = [
      ...(isCurrent ? ['now'] : []),
      ...(isRecommended ? ['recommended'] : []),
      ...(extrapolated ? ['extrapolated'] : []),
    ];
    const prediction = [
      bar(hitRatio),
      percentText(hitRatio),
      `±${(100 * hitRatioError).toFixed(1)}`,
      rateText(upstreamRps),
      roughDuration(ageP90Ms),
      outdatedRatio === null ? '-' : percentText(outdatedRatio),
    ];
    return {
      prediction,
      isMarked: isCurrent || isRecommended,
      cells: [formatDuration(freshMs), ...prediction, marks.join(', ')],
    };
  });
  // TTLs with the same prediction share one row, that of the shortest; those in force or recommended have their own.
  const shown = rows.filter(
    ({ prediction, isMarked }, index) => isMarked || prediction.join() !== rows[index - 1]?.prediction.join(),
  );
  return columns([
    ['TIME', 'HIT RATIO', '', '', 'STORE CALLS/S', 'AGE P90', 'OUTDATED', ''],
    ...shown.map(({ cells }) => cells),
  ]);
}
