/** `evalgate cache advice`: what other times would do, as a chart, and the line that sets the recommended one. */
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import { formatDuration } from '../../duration.ts';
import { adminClientOf, adminPart, withAdminOption } from '../admin-client.ts';
import { answer, makeCommand } from '../command.ts';
import { columns, printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { ageText, bar, percentText, rateText } from './chart.ts';

const pointSchema = z.looseObject({
  freshMs: z.int().min(0),
  hitRatio: z.number(),
  upstreamRps: z.number(),
  ageP90Ms: z.number(),
  outdatedRatio: z.number().nullable(),
  extrapolated: z.boolean(),
});
const classSchema = z.looseObject({
  class: z.string(),
  reads: z.number(),
  since: z.string().nullable(),
  outdatedLimit: z.number(),
  current: pointSchema.nullable(),
  measured: z.looseObject({ hitRatio: z.number(), upstreamRps: z.number() }).nullable(),
  curve: z.array(pointSchema),
  recommendation: z.looseObject({ freshMs: z.int().min(0).nullable(), why: z.string() }),
});
const adviceSchema = z.looseObject({ at: z.string(), processes: z.int(), classes: z.array(classSchema) });

type Advice = z.output<typeof adviceSchema>;
type ClassAdvice = z.output<typeof classSchema>;
type Point = z.output<typeof pointSchema>;

export function adviceCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'advice',
      summary: 'show what other cache times would do to hit ratio and store load, and which to set',
      details: [
        'From live traffic, of all processes together: one row per time; those that make no difference are left out. HIT',
        'RATIO is 1 less the calls to the store for each read, list pages that bring a call along included; AGE P90 is how old nine of ten answers would be at most; OUTDATED is the share of answers that would differ',
        'from what the store has by then, as far as its refreshes have told.',
        'Extrapolated times are longer than traffic was watched: their figures are a guess.',
      ].join('\n'),
      examples: ['evalgate cache advice --class list', "evalgate cache advice --json | jq '.classes[].recommendation'"],
    },
    terminal,
  );
  return withAdminOption(command, terminal)
    .addOption(new Option('--class <class>', 'only this class of answers').choices(CACHE_CLASSES))
    .action(async () => {
      const { class: wanted } = command.opts<{ class?: CacheClass }>();
      const client = adminClientOf(command, terminal);
      const advice = await client.call({ method: 'GET', path: '/api/cache/advice', answer: adviceSchema });
      const classes = advice.classes.filter((one) => wanted === undefined || one.class === wanted);
      const document = { ...advice, classes };
      answer(terminal, command, { document, text: adviceText(document, adminPart(command)) });
    });
}

function adviceText({ processes, classes }: Advice, admin: string): string {
  const read = classes.filter(({ curve }) => curve.length > 0);
  const idle = classes.filter(({ curve }) => curve.length === 0);
  const from = processes === 1 ? 'one process' : `${processes} processes`;
  return [
    ...read.map((one) => classText(one, from, admin)),
    ...(idle.length === 0 ? [] : [`Nothing was read yet of: ${printable(idle.map((one) => one.class).join(', '))}.`]),
  ].join('\n\n');
}

function classText(advice: ClassAdvice, from: string, admin: string): string {
  const { class: cacheClass, reads, since, measured, curve } = advice;
  const heading = `${printable(cacheClass)}: ${reads} reads of ${from}${since === null ? '' : ` since ${printable(since)}`}`;
  const real =
    measured === null
      ? []
      : [
          `Measured with the times that were in force: hit ratio ${percentText(measured.hitRatio)}, ${rateText(measured.upstreamRps)} store calls/s`,
        ];
  return [heading, ...real, chart(advice, curve), ...doubt(advice), ...verdict(advice, admin)].join('\n');
}

/** More than this between what is worked out for the time in force and what was measured needs a word. */
const DOUBTFUL = 0.05;

function doubt({ current, measured }: ClassAdvice): readonly string[] {
  if (current === null || measured === null || Math.abs(current.hitRatio - measured.hitRatio) < DOUBTFUL) return [];
  return [
    `For the time in force a hit ratio of ${percentText(current.hitRatio)} is worked out, and ${percentText(measured.hitRatio)} was measured: a time was changed meanwhile, something was purged, or copies had to make room. Go by the differences.`,
  ];
}

const HEADING = ['TIME', 'HIT RATIO', '', 'STORE CALLS/S', 'AGE P90', 'OUTDATED', ''];

function chart(advice: ClassAdvice, curve: readonly Point[]): string {
  const rows = curve.map((point) => {
    const { freshMs, hitRatio, upstreamRps, ageP90Ms, outdatedRatio } = point;
    const prediction = [
      bar(hitRatio),
      percentText(hitRatio),
      rateText(upstreamRps),
      ageText(ageP90Ms),
      outdatedRatio === null ? '-' : percentText(outdatedRatio),
    ];
    return { time: formatDuration(freshMs), prediction, marks: marks(point, advice) };
  });
  // The shortest of all times with the same prediction is shown, and those that are in force or recommended.
  const shown = rows.filter(({ prediction, marks: named }, index) => {
    return prediction.join() !== rows[index - 1]?.prediction.join() || /now|recommended/.test(named);
  });
  return columns([HEADING, ...shown.map(({ time, prediction, marks: named }) => [time, ...prediction, named])]);
}

function marks({ freshMs, extrapolated }: Point, { current, recommendation }: ClassAdvice): string {
  return [
    ...(freshMs === current?.freshMs ? ['now'] : []),
    ...(freshMs === recommendation.freshMs ? ['recommended'] : []),
    ...(extrapolated ? ['extrapolated'] : []),
  ].join(', ');
}

/** Why, and how to apply it where it isn't in force. */
function verdict({ class: cacheClass, current, recommendation }: ClassAdvice, admin: string): readonly string[] {
  const { freshMs, why } = recommendation;
  const isNews = freshMs !== null && freshMs !== current?.freshMs;
  const apply = isNews
    ? [`To apply it: evalgate cache ttl set ${printable(cacheClass)} --fresh ${formatDuration(freshMs)}${admin}`]
    : [];
  return [printable(why), ...apply];
}
