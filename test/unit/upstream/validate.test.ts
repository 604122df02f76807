import { describe, expect, test } from 'vitest';

import { dealInsightsSchema, evaluationSchema } from '../../../src/domain/records.ts';
import { MAX_MEMBER_VALUES, validatorOf } from '../../../src/upstream/validate.ts';
import { anEvaluation, dealInsights } from '../../support/records.ts';

const validateEvaluation = validatorOf(evaluationSchema);
const validateInsights = validatorOf(dealInsightsSchema);
const CATEGORY = { key: 'k', label: 'l', value: 1 };
/** The array, and four values for each of its elements. */
const MOST_CATEGORIES = Math.floor((MAX_MEMBER_VALUES - 1) / 4);

const categories = (count: number): (typeof CATEGORY)[] => Array.from({ length: count }, () => CATEGORY);

describe('the number of values within a validated member', () => {
  test('may be as high as allowed', () => {
    const record = anEvaluation({ categoryScores: categories(MOST_CATEGORIES) });
    expect(validateEvaluation(record)).toStrictEqual({ ok: true, record });
  });

  test('beyond that makes the member faulty, without the schema having seen it', () => {
    const record = anEvaluation({ categoryScores: categories(MOST_CATEGORIES + 1) });
    expect(validateEvaluation(record)).toStrictEqual({ ok: false, path: 'categoryScores' });
  });

  test('is not counted in unknown and internal members', () => {
    const many = categories(MOST_CATEGORIES + 1);
    const record = anEvaluation();
    const sent = { ...record, traces: many, evaluatee: { ...record.evaluatee, modelRun: many } };
    expect(validateEvaluation(sent)).toStrictEqual({ ok: true, record });
  });

  test('is not counted in open objects', () => {
    const record = dealInsights({ insights: { many: categories(MOST_CATEGORIES + 1) } });
    expect(validateInsights(record)).toStrictEqual({ ok: true, record });
  });
});

test.each([null, undefined, 'ev_1', 7, true])('%j is no record', (value) => {
  expect(validateEvaluation(value)).toStrictEqual({ ok: false, path: '(record)' });
});
