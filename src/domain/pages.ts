/** The lists of both surfaces and how they are paged. */
import { z } from 'zod';
import { callSchema, toCall } from './call.ts';
import type { EvaluationPage } from './records.ts';
import { reportSchema, toReport } from './report.ts';

/** The fields of every Pagination object of the calls surface. */
export const paginationFields = {
  page: z.int().min(1).meta({ description: 'The page asked for, from 1.' }),
  page_size: z.int().min(1).meta({ description: 'The page size asked for.' }),
  total_count: z.int().min(0).meta({ description: 'How many there are on all pages together.' }),
  total_pages: z.int().min(0).meta({ description: 'How many pages there are; 0 where there is nothing.' }),
} as const;

/** Pagination of a list of calls. */
const paginationSchema = z.strictObject(paginationFields).meta({ id: 'Pagination' });

/** The body of a list of reports. */
export const reportsPageSchema = z
  .strictObject({
    reports: z.array(reportSchema).meta({ description: 'Newest first: by `created_at`, then `id`, descending.' }),
    page: z.int().min(1).meta({ description: 'The page that this is, from 1.' }),
    total_count: z.int().min(0).meta({ description: 'How many reports match on all pages together.' }),
  })
  .meta({ id: 'ReportsPage' });

/** The body of a list of calls. */
export const callsPageSchema = z
  .strictObject({
    calls: z.array(callSchema).meta({ description: 'Newest first: by `created_at`, then `id`, descending.' }),
    pagination: paginationSchema,
  })
  .meta({ id: 'CallsPage' });

export type ReportsPage = z.output<typeof reportsPageSchema>;
export type CallsPage = z.output<typeof callsPageSchema>;

/** Which page was asked for. */
export interface PageOfList {
  /** From 1. */
  readonly page: number;
  /** At least 1. */
  readonly pageSize: number;
}

/** A page of reports. `pageNumber` counts from 1; `total_count` is the store's, also past the end. */
export function toReportsPage(page: EvaluationPage, pageNumber: number): ReportsPage {
  return { reports: page.items.map(toReport), page: pageNumber, total_count: page.total };
}

/** A page of calls; past the end it is empty, with the true counts. */
export function toCallsPage(page: EvaluationPage, request: PageOfList): CallsPage {
  return {
    calls: page.items.map(toCall),
    pagination: {
      page: request.page,
      page_size: request.pageSize,
      total_count: page.total,
      total_pages: Math.ceil(page.total / request.pageSize),
    },
  };
}
