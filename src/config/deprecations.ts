/** What the answers of operations announce of their end, as it is written in the file. */
import type { z } from 'zod';
import { type Deprecation, OPERATIONS } from '../domain/operations.ts';
import { type Kind, list, ValueProblem } from './kinds.ts';

const FORM = /^(?<target>\S+) from (?<from>\S+)(?: until (?<until>\S+))?(?: see (?<link>\S+))?$/;
const DATE = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2})?Z?$/;
const TARGETS = ['v1', 'v2', ...OPERATIONS.v1, ...OPERATIONS.v2] as const;

/** Texts like `v1 from 2027-01-01 until 2028-01-01 see https://docs.example/v1`, each of another target. */
export function deprecations(): Kind<Deprecation[]> {
  const { schema, allowed } = list(
    parseDeprecation,
    'a list of texts like "v1 from 2027-01-01 until 2028-01-01 see https://docs.example/v1": a surface or an operationId, then dates in UTC',
  );
  return { schema: schema.superRefine(refuseRepeated), allowed };
}

function refuseRepeated(all: readonly Deprecation[], context: z.RefinementCtx): void {
  const targets = all.map(({ target }) => target);
  const repeated = targets.find((target, index) => targets.indexOf(target) !== index);
  if (repeated === undefined) return;
  context.addIssue({ code: 'custom', params: { problem: `${repeated} is there more than once` } });
}

/** Null for another form. Throws a ValueProblem. */
function parseDeprecation(text: string): Deprecation | null {
  const groups = FORM.exec(text)?.groups;
  if (groups === undefined) return null;
  const { target: name, from = '', until, link } = groups;
  const target = TARGETS.find((known) => known === name);
  if (target === undefined) throw new ValueProblem(`there is no ${name}: it can be ${TARGETS.join(', ')}`);
  const fromMs = timeOf(from);
  const untilMs = until === undefined ? null : timeOf(until);
  // RFC 9745 section 4.
  if (untilMs !== null && untilMs < fromMs) throw new ValueProblem(`${target} would end before it is deprecated`);
  return { target, fromMs, untilMs, link: link === undefined ? null : linkOf(link) };
}

/** Unix milliseconds, of whole seconds; of a date alone, its beginning. */
function timeOf(text: string): number {
  const [, date, time = 'T00:00:00'] = DATE.exec(text) ?? [];
  const timeMs = Date.parse(`${date}${time}Z`);
  // What there is no such day of would be taken for one of the next month.
  const isReal = !Number.isNaN(timeMs) && new Date(timeMs).toISOString() === `${date}${time}.000Z`;
  if (!isReal) throw new ValueProblem(`${JSON.stringify(text)} is no date like 2027-01-01 or 2027-01-01T12:00:00Z`);
  return timeMs;
}

/** As it can stand in a header. */
function linkOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new ValueProblem(`${JSON.stringify(text)} is no http or https address`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new ValueProblem('the address after "see" is shown to everybody and may hold no user name and password');
  }
  return url.href;
}
