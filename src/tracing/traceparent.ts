/** The header by which a trace goes from one program to the next (W3C Trace Context, `traceparent`). */
import type { SpanContext } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';

const MOST_CHARACTERS = 512;

/** What a caller's header says; null where it is missing or malformed. Several of them are none. */
export function readTraceparent(header: string | readonly string[] | undefined): SpanContext | null {
  if (typeof header !== 'string' || header.length > MOST_CHARACTERS) return null;
  const parsed = parseTraceParent(header);
  return parsed === null ? null : { ...parsed, isRemote: true };
}

/** Version 00, and of the flags the one that is known. */
export function writeTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
}
