/** The fixed words of the API and the store, and the forms of ids and names. The help names them, so it loads no schemas for it. */

/** Ids of evaluations, scorecards and their parts. */
export const ID_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;
/** The same for those who read no pattern. */
export const ID_LENGTH = { minLength: 1, maxLength: 64 } as const;
/** Workspace ids: any UUID, whatever its version. */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Names of operators, as a part of a pattern. */
export const OPERATOR_NAME_SOURCE = '[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}';
export const OPERATOR_NAME = new RegExp(`^${OPERATOR_NAME_SOURCE}$`);
export const OPERATOR_NAME_FORM = '1 to 64 letters, digits, _, ., @ and -, beginning with a letter or digit';

export const SCOPES = ['reports.read', 'calls.read', 'coaching.read'] as const;
export type Scope = (typeof SCOPES)[number];

export const EVALUATION_STATES = ['QUEUED', 'TRANSCRIBING', 'SCORING', 'COMPLETED', 'FAILED'] as const;
export const TRANSCRIPT_FORMATS = ['speaker_text', 'webvtt', 'srt', 'utterances_json'] as const;
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number];
