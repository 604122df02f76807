/**
 * The head of an answer as text, line by line as it is sent. Node checks fields and puts them together one by one, which for
 * the two dozen fields of an answer is a seventh of all that a request from memory costs.
 */
import { type IncomingMessage, ServerResponse } from 'node:http';

/** Field lines of a head (RFC 9112 section 5), each with its end: `Name: value\r\n`. Goes to the system as it is. */
export type FieldLines = string;

/** What a value may hold: no control characters, so that none can end its line, and only what fits into a byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** For values that are not the gateway's own in every part. Throws where one holds what no field may. */
export function fieldLine(name: string, value: string): FieldLines {
  if (!VALUE.test(value)) throw new TypeError(`The value of the field ${name} holds what no field may.`);
  return `${name}: ${value}\r\n`;
}

/** The same for names and values. */
export function fieldLines(fields: Readonly<Record<string, string>>): FieldLines {
  let lines = '';
  for (const [name, value] of Object.entries(fields)) lines += fieldLine(name, value);
  return lines;
}

declare module 'node:http' {
  interface ServerResponse {
    /** Node's own: puts the head together, `firstLine` and then the fields, in whatever form, and adds those it answers for. */
    _storeHeader(firstLine: string, fields: unknown): void;
  }
}

/** A response that takes most of its head as text. Whoever makes a server for answers names it as `ServerResponse`. */
export class HeadResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  #lines: FieldLines = '';

  /**
   * As `writeHead`, with `lines` behind the status line as they are. What Node itself goes by, such as Content-Length and
   * Connection, belongs into `fields`: names and values in turn.
   */
  writeHeadLines(status: number, lines: FieldLines, fields: string[]): this {
    this.#lines = lines;
    return this.writeHead(status, fields);
  }

  override _storeHeader(firstLine: string, fields: unknown): void {
    // oxlint-disable-next-line no-underscore-dangle -- that is how Node names it
    super._storeHeader(firstLine + this.#lines, fields);
  }
}
