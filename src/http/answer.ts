/** What a request is answered with, and how it is written: in one piece, once everything about it is known. */
import { type Body, toBody } from './body.ts';
import { type FieldLines, fieldLine, type HeadResponse } from './head.ts';
import type { Context } from './state.ts';

export interface Answer {
  readonly status: number;
  /** Beside those of every answer and those of the key's quota. Without Content-Length. */
  readonly fields: FieldLines;
  /** Null for a 304. */
  readonly body: Body | null;
}

export const JSON_TYPE = fieldLine('Content-Type', 'application/json; charset=utf-8');

/** Nobody is to keep it. */
export const NO_STORE = fieldLine('Cache-Control', 'no-store');

export function jsonAnswer(status: number, fields: FieldLines, value: object): Answer {
  return { status, fields: JSON_TYPE + fields, body: toBody(Buffer.from(JSON.stringify(value))) };
}

/** Writes the request's answer, `response` being the request's own, where it can still be sent. */
export function writeAnswer(
  ctx: Context,
  response: HeadResponse,
  { status, fields, body }: Answer,
  isLast: boolean,
): void {
  if (response.headersSent || response.destroyed) return;
  const ofTransfer = isLast ? ['Connection', 'close'] : [];
  if (body !== null) ofTransfer.push('Content-Length', String(body.length));
  response.writeHeadLines(status, ctx.state.fields + fields, ofTransfer);
  if (body === null || ctx.req.method === 'HEAD') response.end();
  else response.end(body, 'latin1');
}
