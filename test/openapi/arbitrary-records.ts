/** All records that the store may send by its interface, as fast-check arbitraries of the JSON on the wire. */
import * as fc from 'fast-check';
import { CRM_OBJECT_TYPES } from '../../src/domain/records.ts';
import { EVALUATION_STATES } from '../../src/domain/vocabulary.ts';
import { hasReport } from '../../src/domain/report.ts';

/** Stands in every planted value, and in no other: generated texts have no such character. */
export const PLANTED = '\u{10FFFE}planted';

const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary', maxLength: 12 }).filter((value) => !value.includes('\u{10FFFE}')),
  fc.constantFrom('', ' ', '__proto__', 'constructor', 'toString', '\ud800', 'null', '1e21'),
);
const nullableText = fc.option(text);
const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.constantFrom(0, -0, 1e21, 1e-7, Number.MAX_VALUE, Number.MIN_VALUE),
);
const timestampMs = fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 });
const email = fc
  .emailAddress()
  .filter((value) => hasReport({ evaluatee: { displayName: '', givenName: '', email: value } }));
const ofEvaluation = { evaluationId: id, workspaceId: fc.uuid() };
/** An object whose members the interface leaves open. Nothing is ever planted in it, for all of it is public. */
const openObject = fc.dictionary(text, fc.jsonValue());

export const evaluation = evaluationWith(email);
/** Most have no report, which promises the form of an e-mail address. */
export const evaluationOfAnyEmail = evaluationWith(text);

function evaluationWith(evaluateeEmail: fc.Arbitrary<string>) {
  return fc.record({
    _id: id,
    workspaceId: fc.uuid(),
    title: text,
    ownerUserId: text,
    state: fc.constantFrom(...EVALUATION_STATES),
    overallScore: number,
    categoryScores: fc.array(fc.record({ key: text, label: text, value: fc.option(number) })),
    scorecardRef: fc.record({ id: nullableText, name: text }),
    createdAtMs: timestampMs,
    durationSeconds: fc.option(number),
    source: nullableText,
    evaluatee: fc.record(
      { userId: nullableText, displayName: text, givenName: text, email: evaluateeEmail, avatar: nullableText },
      { requiredKeys: ['displayName', 'givenName', 'email'] },
    ),
    shareLink: fc.option(fc.record({ id: text, deactivatedAtMs: fc.option(timestampMs) })),
    people: fc.array(
      fc.record({ name: nullableText, email: nullableText, spoke: fc.boolean(), attended: fc.boolean() }),
    ),
    crmLinks: fc.array(
      fc.record({
        objectType: fc.constantFrom(...CRM_OBJECT_TYPES),
        externalId: text,
        label: text,
        href: nullableText,
      }),
    ),
  });
}

const namedComment = fc.record({ name: text, comment: text });

export const scoredCard = fc.record({
  ...ofEvaluation,
  scorecard: fc.record({
    name: text,
    sections: fc.array(
      fc.record({
        name: text,
        criteria: fc.array(fc.record({ id: text, name: text, score: fc.oneof(text, number), comment: nullableText })),
      }),
    ),
  }),
  coachingPlan: fc.record({
    focusArea: fc.record({
      biggestImprovementOpportunity: text,
      recommendation: text,
      tryThis: text,
      questionSuggestions: fc.array(text),
    }),
    strengths: fc.array(namedComment),
    areasForImprovement: fc.array(namedComment),
  }),
});

export const dealInsights = fc.record({ ...ofEvaluation, permalink: text, insights: openObject });
export const scorecard = fc.record({ _id: id, workspaceId: fc.uuid(), name: text, rubric: openObject });

/** Internal members, and members with the names that public forms have: neither may get there. */
const PLANTED_NAMES = [
  'modelRun',
  'reviewerNotes',
  'costCents',
  'internalFlags',
  '__proto__',
  'toJSON',
  'status',
  'share',
  'participants',
  'evaluatee_user',
  'crm_deals',
  'crm_objects',
  'url',
  'type',
  'score_breakdown',
];
const OPEN_MEMBERS = new Set(['rubric', 'insights']);

/** The record as JSON text, with unknown members in any of its objects, at any depth. */
export function planted<T>(record: fc.Arbitrary<T>): fc.Arbitrary<string> {
  const members = fc.uniqueArray(fc.constantFrom(...PLANTED_NAMES), { maxLength: 4 });
  const everywhere = fc.infiniteStream(members);
  return fc.tuple(record, everywhere).map(([value, stream]) => JSON.stringify(plantIn(value, stream)));
}

function plantIn(value: unknown, stream: Iterator<readonly string[]>): unknown {
  if (Array.isArray(value)) return value.map((item) => plantIn(item, stream));
  if (typeof value !== 'object' || value === null) return value;
  const own = Object.entries(value).map(([name, member]: [string, unknown]) => [
    name,
    OPEN_MEMBERS.has(name) ? member : plantIn(member, stream),
  ]);
  const step = stream.next();
  const names = step.done === true ? [] : step.value;
  const unknown = names.filter((name) => !Object.hasOwn(value, name)).map((name) => [name, PLANTED_VALUES]);
  return Object.fromEntries([...own, ...unknown]);
}

const PLANTED_VALUES = [PLANTED, { [PLANTED]: [PLANTED] }];
