/** The transcript record of a call, made when it is asked for. */
import type { TranscriptRecord } from '../domain/records.ts';
import type { Call, TranscriptShape } from './call.ts';
import { converse } from './conversation.ts';
import { createFacts } from './facts.ts';
import { createRandom } from './random.ts';
import type { Random } from './random.ts';
import { writeMinutes, writeSpeakerText, writeSrt, writeUtterances, writeWebVtt } from './transcript-body.ts';
import type { TurnWriter } from './transcript-body.ts';

/** What the interface allows at most, and the one huge transcript comes close to. */
const HUGE_BODY_BYTES = 2_000_000;

/** The same record for the same seed and call. */
export function createTranscript(seed: number, call: Call): TranscriptRecord {
  const random = createRandom(seed, 'transcript', call.id);
  const body = writeBody(seed, call, random);
  return {
    evaluationId: call.id,
    workspaceId: call.workspace.id,
    format: call.transcript.declared,
    body: call.transcript.crlf ? withCrLf(body, call) : body,
  };
}

function writeBody(seed: number, call: Call, random: Random): string {
  const { facts, deal } = createFacts(seed, call);
  const write = (writer: TurnWriter): string => writer(converse(call, facts, random), random);
  const writers: Readonly<Record<TranscriptShape['written'], () => string>> = {
    speaker_text: () => write(writeSpeakerText),
    webvtt: () => write(writeWebVtt),
    srt: () => write(writeSrt),
    utterances_json: () => write(writeUtterances),
    minutes: () => writeMinutes(facts, deal, random),
    empty: () => '',
    huge: () => writeHuge(() => write(writeSpeakerText)),
  };
  return writers[call.transcript.written]();
}

/** Sessions one after the other, cut at the last whole line within the size. */
function writeHuge(writeSession: () => string): string {
  const sessions: string[] = [];
  let bytes = 0;
  while (bytes < HUGE_BODY_BYTES) {
    const session = writeSession();
    sessions.push(session);
    bytes += Buffer.byteLength(session);
  }
  const body = Buffer.from(sessions.join('')).subarray(0, HUGE_BODY_BYTES);
  return body.subarray(0, body.lastIndexOf('\n') + 1).toString();
}

/** In JSON a line end is white space between values only: inside the strings it is escaped, so nothing there changes. */
function withCrLf(body: string, call: Call): string {
  return call.transcript.written === 'utterances_json' ? body : body.replaceAll('\n', '\r\n');
}
