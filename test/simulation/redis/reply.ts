/** Replies of the modelled Redis. Strings hold bytes, one per character. */

/** A reply such as `OK`, which is no value. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An error reply. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

export type Reply = null | number | string | Status | Failure | readonly Reply[] | ReadonlyMap<string, Reply>;

export const OK = new Status('OK');
export const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';

/** The reply in the form that a client of the third protocol gets. */
export function encode(reply: Reply): string {
  if (reply === null) return '_\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`;
  if (reply instanceof Status) return `+${reply.text}\r\n`;
  if (reply instanceof Failure) return `-${reply.message}\r\n`;
  if (isMap(reply)) {
    return `%${reply.size}\r\n${[...reply].map(([key, value]) => encode(key) + encode(value)).join('')}`;
  }
  const items: Reply[] = [...reply.values()];
  return `*${items.length}\r\n${items.map(encode).join('')}`;
}

function isMap(reply: Reply): reply is ReadonlyMap<string, Reply> {
  return reply instanceof Map;
}

/** A push, which is no reply: a message, or that a channel is listened to. */
export function encodePush(items: readonly Reply[]): string {
  return `>${items.length}\r\n${items.map(encode).join('')}`;
}

/** The same reply as the second protocol, and so each script, has it: a map is a list of keys and values in turn. */
export function flat(reply: Reply): Reply {
  return isMap(reply) ? [...reply].flat() : reply;
}

/** Takes the commands that are whole off the bytes; returns them and what is left. */
export function parseCommands(text: string): {
  readonly commands: readonly (readonly string[])[];
  readonly rest: string;
} {
  const commands: string[][] = [];
  let begin = 0;
  for (;;) {
    const parsed = parseCommand(text, begin);
    if (parsed === null) return { commands, rest: text.slice(begin) };
    commands.push(parsed.words);
    begin = parsed.end;
  }
}

function parseCommand(text: string, begin: number): { readonly words: string[]; readonly end: number } | null {
  let at = begin;
  const readNumber = (): number | null => {
    const end = text.indexOf('\r\n', at);
    if (end < 0) return null;
    const value = Number(text.slice(at + 1, end));
    at = end + 2;
    return value;
  };
  const count = readNumber();
  if (count === null) return null;
  const words: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const length = readNumber();
    if (length === null || at + length + 2 > text.length) return null;
    words.push(text.slice(at, at + length));
    at += length + 2;
  }
  return { words, end: at };
}
