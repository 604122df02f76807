/** Announcements of the store: which records changed, as `POST /api/changes` takes them and as the gateway uses them. */
import { z } from 'zod';
import type { AnnouncedChange } from '../cache/changes.ts';
import { ID_PATTERN, UUID_PATTERN } from '../domain/vocabulary.ts';
import type { PurgeMode } from '../journal/journal.ts';
import { EVALUATION_KINDS } from '../upstream/resources.ts';

export interface Announcement {
  /** `hard`: the old copies are never served again. `soft`: they are served if the renewal fails. */
  readonly mode: PurgeMode;
  readonly changes: readonly AnnouncedChange[];
}

/** More are refused with 413. */
export const MAX_CHANGES = 1000;
/** Holds so many changes, whatever they name. */
export const ANNOUNCEMENT_LIMIT_BYTES = 1024 * 1024;

const ID = 'a text of 1 to 64 characters of A-Z, a-z, 0-9, _ and -';
const KINDS = EVALUATION_KINDS.join(', ');
/** RFC 9110, 8.8.3; a store's ETag is rarely longer than a digest. */
const ETAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]{0,128}"$/;

const id = z.string().regex(ID_PATTERN);
const uuid = z.string().regex(UUID_PATTERN).toLowerCase();
const etag = z
  .string()
  .regex(ETAG)
  .optional()
  .describe('an ETag with its quotes, of at most 128 characters, such as "\\"3f2a\\""');

const members = z.strictObject({
  evaluation: id.optional().describe(`${ID}; the id of an evaluation, or else scorecard`),
  scorecard: id.optional().describe(`${ID}; the id of a scorecard whose rubric changed, with workspace alone`),
  workspace: uuid.describe('a UUID'),
  kinds: z
    .array(z.enum(EVALUATION_KINDS).describe(KINDS))
    .min(1)
    .max(EVALUATION_KINDS.length)
    .optional()
    .describe(`an array of ${KINDS}; all if it is left out; not of a scorecard`),
  created: z
    .boolean()
    .optional()
    .describe('true (the store has it since now) or false (the default); not of a scorecard'),
  deleted: z
    .boolean()
    .optional()
    .describe('true (the store has it no more) or false (the default); neither of a scorecard nor with created'),
  previousWorkspace: uuid
    .optional()
    .describe('a UUID other than workspace: where it was before; neither of a scorecard nor with created or deleted'),
  etags: z
    .strictObject({ evaluation: etag, transcript: etag, scorecard: etag, dealInsights: etag })
    .optional()
    .describe(`an object of ${KINDS}, each the ETag that the store answers with now; not of a scorecard`),
});

const NOT_OF_A_RUBRIC = ['kinds', 'created', 'deleted', 'previousWorkspace', 'etags'] as const;

const change = members
  .superRefine((given, context) => {
    const refuse = (...path: string[]): void => context.addIssue({ code: 'custom', path });
    const { evaluation, scorecard, workspace, created, deleted, previousWorkspace } = given;
    if ((evaluation === undefined) === (scorecard === undefined)) refuse();
    if (evaluation === undefined) {
      for (const name of NOT_OF_A_RUBRIC) if (given[name] !== undefined) refuse(name);
      return;
    }
    if (deleted === true && created === true) refuse('deleted');
    const isMoved = previousWorkspace !== undefined;
    if (isMoved && (previousWorkspace === workspace || created === true || deleted === true))
      refuse('previousWorkspace');
  })
  .transform(({ evaluation, scorecard = '', workspace, ...about }): AnnouncedChange => {
    const { kinds = EVALUATION_KINDS, created = false, deleted = false, previousWorkspace = null, etags = {} } = about;
    return {
      tag: evaluation === undefined ? `scorecard:${scorecard}` : `evaluation:${evaluation}`,
      workspace,
      kinds: evaluation === undefined ? ['rubric'] : EVALUATION_KINDS.filter((kind) => kinds.includes(kind)),
      isCreated: created,
      isDeleted: deleted,
      previousWorkspace,
      etags: Object.fromEntries(
        Object.entries(etags).flatMap(([kind, tag]) => (tag === undefined ? [] : [[kind, tag]])),
      ),
    };
  })
  .describe('an object with workspace and one of evaluation and scorecard');

/** The body of `POST /api/changes`. Members that are unknown or wrong are faults. */
export const announcementBody = () =>
  z
    .strictObject({
      mode: z
        .enum(['soft', 'hard'])
        .default('soft')
        .describe(
          'soft (the default: the old copy is served if the renewal fails) or hard (the old copy is never served again)',
        ),
      changes: z.array(change).min(1).max(MAX_CHANGES).describe(`an array of 1 to ${MAX_CHANGES} changes`),
    })
    .transform((announcement): Announcement => announcement);
