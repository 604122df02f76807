/**
 * The line of each request. There is one for every request that is served, always of the same few members, so it is put
 * together here rather than by the logger, whose guards against what might be in a line cost more than the line itself.
 * Lines of one turn of the event loop are written at its end, in one piece: a crash takes along those of its own turn.
 */
import { type Logger, symbols } from 'pino';
import { logOrigin } from './logger.ts';

/** None of them is of the caller's choice, but for the request id, which is of `[A-Za-z0-9._-]`. */
export interface RequestLine {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly surface: string;
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly cache: string | null;
  /** In lower-case hex, where there are traces. */
  readonly traceId?: string | undefined;
}

const PLAIN = /^[A-Za-z0-9._-]*$/;
/** What the logger hides; such lines are left to it. */
const KEY_PREFIX = 'evg_';
/** Texts that are remembered as they are written. */
const MOST_REPEATED = 256;
/** Beyond that a turn's lines are written before it ends. */
const MOST_CHARACTERS = 65_536;

/** Makes the function that writes a line of level `info`, where the logger would write one. `isTraced`: of a trace each. */
export function createRequestLog(logger: Logger, isTraced = false): (line: RequestLine) => void {
  const lines = new TurnLines(streamOf(logger));
  const origin = JSON.stringify(logOrigin()).slice(1, -1);
  const time = new IsoTime();
  const repeated = quoter();
  const write = (line: RequestLine, trace: string): void => {
    if (!logger.isLevelEnabled('info')) return;
    const { requestId, keyId, surface, route, method, status, durationMs, cache } = line;
    if (!PLAIN.test(requestId) || requestId.includes(KEY_PREFIX)) {
      const { traceId } = line;
      logger.info({ requestId, keyId, surface, route, method, status, durationMs, cache, traceId }, 'request');
      return;
    }
    lines.add(
      `{"level":"info"${time.now()},${origin},"requestId":"${requestId}","keyId":${quoted(keyId)},"surface":"${surface}",` +
        `"route":${repeated(route)},"method":${repeated(method)},"status":${status},"durationMs":${thousandths(durationMs)},` +
        `"cache":${repeated(cache)}${trace},"msg":"request"}\n`,
    );
  };
  if (!isTraced) return (line) => write(line, '');
  return (line) => write(line, line.traceId === undefined ? '' : `,"traceId":"${line.traceId}"`);
}

function quoted(text: string | null): string {
  return text === null ? 'null' : JSON.stringify(text);
}

/** Quotes a text of which there are few, each once: routes, methods, outcomes. */
function quoter(): (text: string | null) => string {
  const known = new Map<string | null, string>();
  return (text) => {
    const given = known.get(text);
    if (given !== undefined) return given;
    const made = quoted(text);
    if (known.size < MOST_REPEATED) known.set(text, made);
    return made;
  };
}

/** As a number of JSON with three decimals: whole numbers are written far faster than others. */
function thousandths(value: number): string {
  const all = Math.max(0, Math.round(value * 1000));
  const rest = all % 1000;
  return `${(all - rest) / 1000}.${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}`;
}

/** The member of a line that tells when it was written, put together once a millisecond. */
class IsoTime {
  #atMs = Number.NaN;
  #member = '';

  now(): string {
    const nowMs = Date.now();
    if (nowMs !== this.#atMs) {
      this.#atMs = nowMs;
      this.#member = `,"time":"${new Date(nowMs).toISOString()}"`;
    }
    return this.#member;
  }
}

interface Stream {
  write(text: string): unknown;
}

class TurnLines {
  readonly #stream: Stream;
  #text = '';

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  add(line: string): void {
    if (this.#text === '') setImmediate(() => this.#write());
    this.#text += line;
    if (this.#text.length > MOST_CHARACTERS) this.#write();
  }

  #write(): void {
    const text = this.#text;
    this.#text = '';
    if (text !== '') this.#stream.write(text);
  }
}

/** Where the logger's lines go. */
function streamOf(logger: Logger): Stream {
  const stream: unknown = Reflect.get(logger, symbols.streamSym);
  if (isStream(stream)) return stream;
  throw new TypeError('the logger writes to no stream');
}

function isStream(value: unknown): value is Stream {
  return typeof value === 'object' && value !== null && 'write' in value && typeof value.write === 'function';
}
