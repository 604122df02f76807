/** What processes tell each other of flights: how each ended. JSON, because keys and failures hold any text. */
import { z } from 'zod';
import type { FlightFailure } from './ports.ts';

const failureSchema = z.object({
  kind: z.enum([
    'timeout',
    'unreachable',
    'errorStatus',
    'invalidResponse',
    'malformed',
    'overloaded',
    'circuitOpen',
    'maintenance',
    'aborted',
  ]),
  message: z.string(),
  retryAfterMs: z.number().nullable(),
  status: z.int().nullable(),
  // An older release doesn't tell it.
  workspaceId: z.string().nullable().default(null),
});

const messageSchema = z.discriminatedUnion('end', [
  z.object({ end: z.literal('stored'), sender: z.string(), key: z.string(), filledAtMs: z.int() }),
  z.object({ end: z.literal('failed'), sender: z.string(), key: z.string(), failure: failureSchema }),
  // Nothing was to be fetched any more: what was waited for is there.
  z.object({ end: z.literal('released'), sender: z.string(), key: z.string() }),
]);

/** `sender` is the process. */
export type FlightMessage = z.output<typeof messageSchema>;

export function writeFlightMessage(message: FlightMessage): string {
  return JSON.stringify(message);
}

/** What all messages of that sender that tell of something stored begin with. */
export function ownStoredPrefix(sender: string): string {
  return `{"end":"stored","sender":${JSON.stringify(sender)},`;
}

/** Null for what is no such message: another release may tell more. */
export function readFlightMessage(text: string): FlightMessage | null {
  return read(messageSchema, text);
}

export function writeFailure({ kind, message, retryAfterMs, status, workspaceId }: FlightFailure): string {
  return JSON.stringify({ kind, message, retryAfterMs, status, workspaceId });
}

/** Null for what is no failure. */
export function readFailure(text: string): FlightFailure | null {
  return read(failureSchema, text);
}

function read<S extends z.ZodType>(schema: S, text: string): z.output<S> | null {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
