/** The transcript bodies of both surfaces. Parsing and paging are done elsewhere; here their results get their public form. */
import { z } from 'zod';
import { paginationFields } from './pages.ts';
import type { PageOfList } from './pages.ts';

/** The body of a report's transcript. */
export const reportTranscriptSchema = z
  .strictObject({
    transcript: z.string().meta({ description: 'The whole transcript as the store holds it.' }),
    isFormatSupported: z.boolean().meta({
      description: 'Whether it parses as speaker text, WebVTT, SubRip or JSON utterances. An empty one does.',
    }),
  })
  .meta({ id: 'ReportTranscript' });

const segmentSchema = z
  .strictObject({
    index: z.int().min(0).meta({
      description: 'The number of the turn, from 0. A turn that is cut goes on with the same number on the next page.',
    }),
    text: z.string().meta({ description: '`Name: words`, or just the words where no speaker is known.' }),
  })
  .meta({ id: 'TranscriptSegment' });

const transcriptPaginationSchema = z
  .strictObject({
    ...paginationFields,
    total_count: z.int().min(0).meta({ description: 'How many turns the transcript has, whatever the page size.' }),
    has_more: z.boolean().meta({ description: 'Whether there is a next page.' }),
  })
  .meta({ id: 'TranscriptPagination' });

/** The body of one page of a call's transcript. */
export const callTranscriptSchema = z
  .strictObject({
    transcript: z
      .strictObject({
        text: z.string().meta({
          description: 'The texts of the segments, joined by a line feed; with `raw`, joined by nothing.',
        }),
        is_format_supported: z.boolean(),
        segments: z.array(segmentSchema),
      })
      .meta({ id: 'TranscriptContent' }),
    pagination: transcriptPaginationSchema,
    truncated: z.boolean().meta({
      description: 'Whether `maxChars`, not `pageSize`, ended this page before the end of the transcript.',
    }),
  })
  .meta({ id: 'CallTranscript' });

export type ReportTranscript = z.output<typeof reportTranscriptSchema>;
export type CallTranscript = z.output<typeof callTranscriptSchema>;

/** What of a whole transcript the workspace surface shows. */
export interface TranscriptText {
  readonly body: string;
  readonly isFormatSupported: boolean;
}

/** One page cut from a transcript, and which page it is. */
export interface TranscriptCut extends PageOfList {
  readonly text: string;
  readonly segments: readonly { readonly index: number; readonly text: string }[];
  readonly totalCount: number;
  readonly totalPages: number;
  readonly hasMore: boolean;
  readonly truncated: boolean;
  readonly isFormatSupported: boolean;
}

/** The body of a report's transcript. */
export function toReportTranscript(transcript: TranscriptText): ReportTranscript {
  return { transcript: transcript.body, isFormatSupported: transcript.isFormatSupported };
}

/** The body of one page of a call's transcript. */
export function toCallTranscript(cut: TranscriptCut): CallTranscript {
  return {
    transcript: {
      text: cut.text,
      is_format_supported: cut.isFormatSupported,
      segments: cut.segments.map(({ index, text }) => ({ index, text })),
    },
    pagination: {
      page: cut.page,
      page_size: cut.pageSize,
      total_count: cut.totalCount,
      total_pages: cut.totalPages,
      has_more: cut.hasMore,
    },
    truncated: cut.truncated,
  };
}
