/** The transcript bodies of both surfaces. */
import { z } from 'zod';
import { paginationFields } from './call.ts';

export const reportTranscriptSchema = z
  .strictObject({
    transcript: z.string().meta({ description: 'The whole transcript as the store holds it.' }),
    isFormatSupported: z.boolean().meta({
      description: 'Whether it is read in a known form, whatever the store calls it. An empty one is.',
    }),
  })
  .meta({ id: 'ReportTranscript' });

const segmentSchema = z
  .strictObject({
    index: z.int().min(0).meta({
      format: 'int32',
      description: 'The number of the turn, from 0. A turn that is cut goes on with the same number on the next page.',
    }),
    text: z.string().meta({ description: '`Name: words`, or just the words if no speaker is known.' }),
  })
  .meta({ id: 'TranscriptSegment' });

export const callTranscriptSchema = z
  .strictObject({
    transcript: z
      .strictObject({
        text: z.string().meta({
          description: 'The texts of the segments, joined by a line feed; with `raw`, joined by nothing.',
        }),
        is_format_supported: z.boolean().meta({
          description: 'Whether the transcript is read in a known form; otherwise its paragraphs are the segments.',
        }),
        segments: z.array(segmentSchema),
      })
      .meta({ id: 'TranscriptContent' }),
    pagination: z
      .strictObject({
        ...paginationFields,
        total_count: z.int().min(0).meta({ description: 'How many turns the transcript has, whatever the page size.' }),
        has_more: z.boolean().meta({ description: 'Whether there is a next page.' }),
      })
      .meta({ id: 'TranscriptPagination' }),
    truncated: z.boolean().meta({
      description: 'Whether `maxChars`, not `pageSize`, ended this page before the end of the transcript.',
    }),
  })
  .meta({ id: 'CallTranscript' });

export type ReportTranscript = z.output<typeof reportTranscriptSchema>;
export type CallTranscript = z.output<typeof callTranscriptSchema>;
