import { describe, expect, test } from 'vitest';
import { toCall } from '../../../src/domain/call.ts';
import { callsPageSchema, reportsPageSchema, toCallsPage, toReportsPage } from '../../../src/domain/pages.ts';
import { toReport } from '../../../src/domain/report.ts';
import { anEvaluation } from '../../support/records.ts';

const first = anEvaluation({ _id: 'ev_2' });
const second = anEvaluation({ _id: 'ev_1' });

describe('toReportsPage', () => {
  test('holds the reports in their order, the page and the true count', () => {
    const page = toReportsPage({ items: [first, second], total: 7 }, 3);
    expect(page).toStrictEqual({ reports: [toReport(first), toReport(second)], page: 3, total_count: 7 });
    expect(reportsPageSchema.parse(page)).toEqual(page);
  });

  test('Q6: past the end it is empty, with the true count', () => {
    expect(toReportsPage({ items: [], total: 7 }, 99)).toStrictEqual({ reports: [], page: 99, total_count: 7 });
  });
});

describe('toCallsPage', () => {
  test('holds the calls in their order and the pagination', () => {
    const page = toCallsPage({ items: [first, second], total: 7 }, { page: 2, pageSize: 2 });
    expect(page).toStrictEqual({
      calls: [toCall(first), toCall(second)],
      pagination: { page: 2, page_size: 2, total_count: 7, total_pages: 4 },
    });
    expect(callsPageSchema.parse(page)).toEqual(page);
  });

  test.each([
    [0, 50, 0],
    [1, 50, 1],
    [50, 50, 1],
    [51, 50, 2],
    [3, 1, 3],
  ])('Q6: %d calls in pages of %d are %d pages', (total, pageSize, pages) => {
    expect(toCallsPage({ items: [], total }, { page: 9, pageSize }).pagination).toStrictEqual({
      page: 9,
      page_size: pageSize,
      total_count: total,
      total_pages: pages,
    });
  });
});
