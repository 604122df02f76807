/** How the fields of an evaluation become public, the same on both surfaces if both have them. */
import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import type { EvaluationRecord } from '../../../src/domain/records.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { GET_CALL, GET_REPORT } from './endpoints.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

const SURFACES = [
  { endpoint: GET_REPORT, member: 'report' },
  { endpoint: GET_CALL, member: 'call' },
] as const;
const record = z.record(z.string(), z.unknown());

describe.each(SURFACES)('$endpoint.name', ({ endpoint, member }) => {
  /** The public form of an evaluation that differs so, and its text. */
  async function shown(evaluation: Partial<EvaluationRecord>) {
    const subject = putSubject(gateway.store, newSubject(), evaluation);
    const reply = await gateway.get(endpoint.path(subject), { key: await keyFor(gateway, subject) });
    expect(reply.status).toBe(200);
    return { text: reply.text, fields: record.parse(record.parse(reply.json)[member]) };
  }

  test.each([
    [0, '0'],
    [60, '1'],
    [1, '0.02'],
    [0.29, '0'],
    [0.3, '0.01'],
    [90, '1.5'],
    [100, '1.67'],
    [1834, '30.57'],
    [-0.1, '0'],
    [-60, '-1'],
    [60e20, '100000000000000000000'],
  ])('%d seconds are %s minutes', async (durationSeconds, minutes) => {
    expect((await shown({ durationSeconds })).text).toContain(`"duration_in_minutes":${minutes},`);
  });

  test.each([
    [0, '1970-01-01T00:00:00.000Z'],
    [-62_167_219_200_000, '0000-01-01T00:00:00.000Z'],
    [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
  ])('%d is %s', async (createdAtMs, timestamp) => {
    expect((await shown({ createdAtMs })).fields['created_at']).toBe(timestamp);
  });

  test('participants are those who spoke, by name, attendees those who attended, by e-mail address; each else by the other', async () => {
    const people = [
      { name: 'Ann', email: 'ann@example.com', spoke: true, attended: true },
      { name: null, email: 'bob@example.com', spoke: true, attended: true },
      { name: 'Cy', email: null, spoke: true, attended: true },
      { name: null, email: null, spoke: true, attended: true },
      { name: '', email: 'dee@example.com', spoke: true, attended: false },
      { name: 'Eve', email: ' ', spoke: false, attended: true },
      { name: 'Fay', email: 'fay@example.com', spoke: false, attended: false },
    ];
    const { fields } = await shown({ people });
    expect(fields['participants']).toEqual(['Ann', 'bob@example.com', 'Cy', 'dee@example.com']);
    expect(fields['attendees']).toEqual(['ann@example.com', 'bob@example.com', 'Cy', 'Eve']);
  });

  test.each([
    [
      'null is left out, zero is not',
      [['a', null] as const, ['b', 0] as const, ['c', 1.5] as const],
      '{"b":0,"c":1.5}',
    ],
    [
      'of one key the last counts, and null undoes none',
      [['a', 1] as const, ['a', 2] as const, ['a', null] as const],
      '{"a":2}',
    ],
    [
      'names of prototypes are keys like any other',
      [['__proto__', 3] as const, ['constructor', 4] as const],
      '{"__proto__":3,"constructor":4}',
    ],
  ])('scores by category: %s', async (_what, scores, expected) => {
    const categoryScores = scores.map(([key, value]) => ({ key, label: key, value }));
    expect((await shown({ categoryScores })).text).toContain(`"score_breakdown":${expected},`);
  });

  test('CRM: a report shows the deals, a call all objects with their type', async () => {
    const crmLinks = (['account', 'deal', 'contact', 'lead', 'deal'] as const).map((objectType, i) => ({
      objectType,
      externalId: `x${i}`,
      label: `L${i}`,
      href: i === 1 ? 'https://crm.example/x1' : null,
    }));
    const { fields } = await shown({ crmLinks });
    const objects = crmLinks.map(({ objectType, externalId, label, href }) => ({
      id: externalId,
      name: label,
      url: href,
      type: objectType,
    }));
    const deals = objects.filter(({ type }) => type === 'deal').map(({ type: _type, ...deal }) => deal);
    expect(fields['crm_deals'] ?? fields['crm_objects']).toEqual(member === 'report' ? deals : objects);
  });
});

test.each([
  [
    'no id and no picture',
    { displayName: 'R', givenName: '', email: 'r@example.com' },
    { name: 'R', first_name: '', email: 'r@example.com' },
  ],
  [
    'an id that is null',
    { userId: null, displayName: 'R', givenName: '', email: 'r@example.com' },
    { name: 'R', first_name: '', email: 'r@example.com' },
  ],
  [
    'a picture that is null',
    { displayName: 'R', givenName: 'R', email: 'r@example.com', avatar: null },
    { name: 'R', first_name: 'R', email: 'r@example.com', avatar_url: null },
  ],
])('Q8: the person of a report with %s', async (_what, evaluatee, expected) => {
  const subject = putSubject(gateway.store, newSubject(), { evaluatee });
  const reply = await gateway.get(GET_REPORT.path(subject), { key: await keyFor(gateway, subject) });
  expect(record.parse(record.parse(reply.json)['report'])['evaluatee_user']).toStrictEqual(expected);
});
