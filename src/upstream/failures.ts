/**
 * What went wrong in an exchange, as a StoreError. The library's errors carry the address and the bearer token of the
 * request, and a logger writes causes out, so none of them is passed on: only its code is, and only if it is one.
 */
import { BodyTooLargeError, UnknownCodingError } from './bounded-body.ts';
import { StoreError } from './store.ts';

/** Codes of Node.js, its HTTP parser, zlib, the resolver and TLS look like this. */
const CODE_PATTERN = /^[A-Z][A-Z0-9_]{1,60}$/;

/** `status` is the store's, where its headers had arrived. */
export function storeErrorOf(error: unknown, status: number | null): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof BodyTooLargeError || error instanceof UnknownCodingError) {
    return new StoreError('garbled', error.message, { status });
  }
  const code = codeOf(error);
  if (code.startsWith('HPE_')) return new StoreError('garbled', `the answer is not HTTP (${code})`, { status });
  if (code.startsWith('Z_')) return new StoreError('garbled', `the body cannot be decoded (${code})`, { status });
  const when = status === null ? 'before the answer' : 'half-way through the answer';
  return new StoreError('unreachable', `the connection to the store failed ${when} (${code})`, { status });
}

function codeOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error) {
    const { code } = error;
    if (typeof code === 'string' && CODE_PATTERN.test(code)) return code;
  }
  return 'no code';
}
