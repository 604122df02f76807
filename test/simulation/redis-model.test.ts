/**
 * The modelled Redis and a real one, given the same commands: the replies are compared byte by byte, but for times and the texts
 * of errors. Random commands, and all that a simulated fleet has sent.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { planOf } from './plan.ts';
import { encode } from './redis/reply.ts';
import { RedisModel } from './redis/server.ts';
import { live } from './world.ts';

/** So many commands are about the server, or list names in an order that nobody promises. */
const OF_SERVER = new Set(['INFO', 'CONFIG', 'MEMORY', 'SCAN', 'RANDOMKEY']);
/** Hashes of this size keep the order in which their fields were added, as those of the model do. */
const IN_ORDER = ['hash-max-listpack-entries 100000', 'hash-max-listpack-value 10000000'];
const END = 'the end of all replies';

let redis: TestRedis;

beforeAll(async () => {
  redis = await startRedis({ config: IN_ORDER });
});

afterAll(async () => {
  await redis.close();
});

it('answers random commands as Redis does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 40 }), async (commands) => {
      expect(await differences(commands)).toEqual([]);
    }),
    { numRuns: 100 * inject('thoroughness') },
  );
});

it("answers a fleet's commands, scripts among them, as Redis does", { timeout: 120_000 }, async () => {
  const scripts = new Set<string>();
  for (let seed = 1; seed <= 5 * inject('thoroughness'); seed += 1) {
    const commands: (readonly string[])[] = [];
    await live(planOf(seed), (words) => commands.push(words));
    for (const [name, text = ''] of commands) if (name === 'eval') scripts.add(text);
    expect(await differences(commands)).toEqual([]);
  }
  expect(scripts.size).toBeGreaterThan(15);
});

/** Gives both the same commands, at about the same time; returns those that they do not answer alike. */
async function differences(sent: readonly (readonly string[])[]): Promise<readonly object[]> {
  await redis.flush();
  const commands = sent.filter(([name = '']) => !OF_SERVER.has(name.toUpperCase()));
  const startedMicros = 1000 * Date.now();
  const model = new RedisModel({ nowMicros: () => startedMicros, timers: { after: () => () => undefined } });
  const modelled = commands.map((words) => comparable(encode(model.run(words))));
  const real = (await repliesOf(commands)).map(comparable);
  return commands.flatMap((words, place) => {
    const [ours = '', theirs = ''] = [modelled[place], real[place]];
    return isUnordered(words, theirs) || isSame(ours, theirs, isWait(words)) ? [] : [{ words, ours, theirs }];
  });
}

/** The reply with only the code of an error, and with the members of JSON in order, since Lua's tables have none. */
function comparable(reply: string): string {
  return reply.replaceAll(/^-(\w+)[^\r\n]*/gm, '-$1').replaceAll(/^(?:\{.*\}|\[\{.*\}\])$/gm, (text) => {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value, (_, part: unknown) => (isObject(part) ? inOrder(part) : part));
  });
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function inOrder(value: object): object {
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** A script that goes over a table replies in an order that Lua does not promise. Its changes show later. */
function isUnordered([name = '', script = '']: readonly string[], reply: string): boolean {
  return name === 'evalsha' ? reply.includes('"pid":') : script.includes('in pairs(');
}

/** Whether it asks for the wait for a place in a rate, in microseconds, which becomes less while the commands run. */
function isWait(words: readonly string[]): boolean {
  return words.some((word) => word.endsWith(':renewals'));
}

/** The same but for times: what is left of a time, or a point in time, may differ by as long as the commands have taken. */
function isSame(ours: string, theirs: string, inMicros: boolean): boolean {
  if (ours === theirs) return true;
  const [texts, others] = [ours.split(/\d+/), theirs.split(/\d+/)];
  const [numbers, otherNumbers] = [ours.match(/\d+/g) ?? [], theirs.match(/\d+/g) ?? []];
  if (texts.join('#') !== others.join('#')) return false;
  return numbers.every((text, place) => {
    const [one, other] = [Number(text), Number(otherNumbers[place])];
    const [least, mostApart] = one > 1e15 ? [1e15, 5e6] : one > 1e12 ? [1e12, 5000] : [400, 400];
    if (inMicros) return Math.abs(one - other) <= 5e6;
    return one === other || (one >= least && other >= least && Math.abs(one - other) <= mostApart);
  });
}

/** The replies of the real Redis, as bytes. */
async function repliesOf(commands: readonly (readonly string[])[]): Promise<readonly string[]> {
  const { hostname, port } = new URL(redis.url);
  const socket: Socket = connect({ host: hostname, port: Number(port) });
  await once(socket, 'connect');
  let received = '';
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1');
  });
  const all = [['HELLO', '3'], ...commands, ['ECHO', END]];
  socket.write(Buffer.from(all.map(request).join(''), 'latin1'));
  while (!received.endsWith(`${END}\r\n`)) await once(socket, 'data');
  socket.destroy();
  return repliesIn(received).slice(1, -1);
}

function request(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

/** Each reply of the third protocol, as it was sent. */
function repliesIn(text: string): readonly string[] {
  let at = 0;
  const skip = (): void => {
    const [head = ''] = text.slice(at).split('\r\n', 1);
    at += head.length + 2;
    const count = Number(head.slice(1));
    if (head.startsWith('$')) at += count < 0 ? 0 : count + 2;
    if (head.startsWith('*') || head.startsWith('>')) for (let i = 0; i < count; i += 1) skip();
    if (head.startsWith('%')) for (let i = 0; i < 2 * count; i += 1) skip();
  };
  const replies: string[] = [];
  while (at < text.length) {
    const begin = at;
    skip();
    replies.push(text.slice(begin, at));
  }
  return replies;
}

const name = fc.constantFrom('one', 'two', 'three');
const field = fc.constantFrom('a', 'b', 'c');
const value = fc.constantFrom('', '1', '7', 'text', 'ä'.normalize());
const place = fc.integer({ min: -4, max: 4 }).map(String);
const number = fc.integer({ min: 0, max: 9 }).map(String);

function of(word: string, ...parts: readonly fc.Arbitrary<string>[]): fc.Arbitrary<readonly string[]> {
  return fc.tuple(...parts).map((words) => [word, ...words.map((each) => Buffer.from(each).toString('latin1'))]);
}

const lasting = fc.constant('100000');
const id = number.map((text) => `${text}-0`);
const command: fc.Arbitrary<readonly string[]> = fc.oneof(
  of('SET', name, value),
  of('SET', name, value, fc.constantFrom('NX', 'XX')),
  of('SET', name, value, fc.constant('PX'), lasting),
  of('SET', name, value, fc.constant('EX'), lasting),
  of('GET', name),
  of('MGET', name, name),
  of('INCRBY', name, number),
  of('DEL', name, name),
  of('UNLINK', name),
  of('EXISTS', name, name),
  of('TYPE', name),
  of('PEXPIRE', name, fc.constantFrom('0', '-1', '100000')),
  of('PTTL', name),
  of('DBSIZE'),
  of('HSET', name, field, value),
  of('HSET', name, field, value, field, value),
  of('HSETNX', name, field, value),
  of('HINCRBY', name, field, number),
  of('HGET', name, field),
  of('HMGET', name, field, field),
  of('HGETALL', name),
  of('HKEYS', name),
  of('HVALS', name),
  of('HLEN', name),
  of('HEXISTS', name, field),
  of('HSTRLEN', name, field),
  of('HDEL', name, field, field),
  of('RPUSH', name, value, value),
  of('LPUSH', name, value, value),
  of('RPOP', name),
  of('LLEN', name),
  of('LINDEX', name, place),
  of('LRANGE', name, place, place),
  of('LSET', name, place, value),
  of('LREM', name, place, value),
  of('LTRIM', name, place, place),
  of('ZADD', name, number, field),
  of('ZADD', name, number, field, number, field),
  of('ZREM', name, field),
  of('ZCARD', name),
  of('ZRANGE', name, place, place),
  of('ZRANGEBYSCORE', name, number, number),
  of('ZREMRANGEBYSCORE', name, fc.constant('-inf'), number),
  of('ZREMRANGEBYRANK', name, place, place),
  of('XADD', name, id, field, value),
  of('XLEN', name),
  of('XDEL', name, id),
  of('XTRIM', name, fc.constant('MAXLEN'), number),
  of('XRANGE', name, fc.constantFrom('-', '3-0', '5'), fc.constantFrom('+', '6-0', '5')),
  of('XRANGE', name, fc.constant('-'), fc.constant('+'), fc.constant('COUNT'), fc.constant('2')),
  of('XREVRANGE', name, fc.constant('+'), fc.constant('-'), fc.constant('COUNT'), fc.constant('2')),
);
