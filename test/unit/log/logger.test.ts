import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createLogger, type LogOptions } from '../../../src/log/logger.ts';
import { createPrettyFormat } from '../../../src/log/pretty.ts';

const lineSchema = z.looseObject({ level: z.string(), msg: z.string().optional() });

/** A logger at the lowest level and what it writes. */
function recording(options: Partial<LogOptions> = {}) {
  const written = new Array<string>();
  const destination = { write: (line: string) => void written.push(line) };
  const logger = createLogger({ level: 'trace', destination, ...options });
  return { logger, written, last: () => lineSchema.parse(JSON.parse(written.at(-1) ?? '')) };
}

test('a line is one JSON object with time, level, service and process', () => {
  const { logger, written, last } = recording();
  logger.info({ requestId: 'r1', ms: 3 }, 'request');
  expect(written).toHaveLength(1);
  expect(written[0]?.endsWith('}\n')).toBe(true);
  const { time, ...rest } = last();
  expect(rest).toEqual({
    level: 'info',
    service: 'evalgate',
    pid: process.pid,
    requestId: 'r1',
    ms: 3,
    msg: 'request',
  });
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test('lines below the level are not written, and none at all when silent', () => {
  const { logger, written } = recording({ level: 'warn' });
  logger.info('no');
  logger.warn('yes');
  expect(written).toHaveLength(1);
  const silent = recording({ level: 'silent' });
  silent.logger.fatal('no');
  expect(silent.written).toEqual([]);
});

test.each([
  ['authorization', { authorization: 'hunter2' }],
  ['nested headers', { req: { headers: { Authorization: 'hunter2', 'Set-Cookie': ['hunter2'] } } }],
  ['a token in a list', { list: [{ token: 'hunter2' }] }],
  ['a key', { key: 'hunter2', apiKey: 'hunter2', api_key: 'hunter2' }],
  ['an address', { url: 'http://store/?q=hunter2', href: 'hunter2', originalUrl: 'hunter2' }],
  ['a query', { query: { search: 'hunter2' }, search: 'hunter2', querystring: 'hunter2' }],
  ['a hash of a key', { hash: 'hunter2' }],
  ['something too deep to look at', { a: { b: { c: { d: { e: { f: 'hunter2' } } } } } }],
])('K2: %s is never written', (_, fields) => {
  const { logger, written } = recording();
  logger.info(fields, 'line');
  logger.child({ a: 1 }).child(fields).info('line of a child');
  expect(written).toHaveLength(2);
  expect(written.join('')).not.toContain('hunter2');
});

test('K2: a key or credentials inside any text are taken out, and the line stays JSON', () => {
  const { logger, written, last } = recording();
  const key = `evg_${'a1B2'.repeat(9)}ab`;
  logger.info(
    { note: `"${key}"`, list: [`x ${key}`], header: 'bearer abc.def' },
    `message with ${key} and Basic aGk6aG8=`,
  );
  expect(written.join('')).not.toContain(key);
  expect(last()).toMatchObject({
    note: '"[hidden]"',
    list: ['x [hidden]'],
    header: 'bearer [hidden]',
    msg: 'message with [hidden] and Basic [hidden]',
  });
});

test('what is no secret is written as it is', () => {
  const { logger, last } = recording();
  const fields = {
    keyId: 'k_1',
    route: '/v1/x',
    status: 200,
    none: null,
    at: new Date(0),
    path: ['items', 3, 'title'],
  };
  logger.info(fields);
  expect(last()).toMatchObject({ ...fields, at: '1970-01-01T00:00:00.000Z' });
});

describe('an error', () => {
  test('is written with type, private message, code and frames, and nothing that hangs on it', () => {
    const { logger, written, last } = recording();
    const error = Object.assign(new TypeError('private words'), {
      code: 'E_X',
      options: { url: 'hunter2', headers: { a: 'hunter2' } },
      request: { path: 'hunter2' },
      response: { body: 'hunter2' },
    });
    logger.error({ err: error }, 'failed');
    expect(written.join('')).not.toContain('hunter2');
    const { stack, ...rest } = z.looseObject({ stack: z.string() }).parse(last()['err']);
    expect(rest).toEqual({ type: 'TypeError', message: 'private words', code: 'E_X' });
    expect(stack).toMatch(/^at .*logger\.test\.ts/);
  });

  test('is written with its causes, as far as four deep, and with the errors that it gathers', () => {
    const { logger, last } = recording();
    const cyclic = new Error('cyclic');
    cyclic.cause = cyclic;
    logger.error({ err: new AggregateError([new Error('one'), 'two'], 'both', { cause: cyclic }) });
    const logged = z
      .looseObject({ cause: z.unknown(), errors: z.array(z.looseObject({ message: z.string() })) })
      .parse(last()['err']);
    expect(logged.errors.map(({ message }) => message)).toEqual(['one', 'a value that is no Error was thrown']);
    expect(JSON.stringify(logged).match(/"message":"cyclic"/g)).toHaveLength(4);
  });

  test.each([
    ['connect ECONNREFUSED 10.1.2.3:9000', 'connect ECONNREFUSED'],
    ['connect ETIMEDOUT fd00::7:443 - Local (fd00::8:5000)', 'connect ETIMEDOUT'],
    ['getaddrinfo ENOTFOUND store.internal', 'getaddrinfo ENOTFOUND'],
    [
      'Request failed with 500: GET https://store.internal/x?q=secret (retried)',
      'Request failed with 500: GET [address] (retried)',
    ],
    ['cannot use redis+cluster://:pw@a:1,b:2', 'cannot use [address]'],
    ['cannot use rediss+sentinel://u:pw@a:1,b:2/main', 'cannot use [address]'],
    [
      "Hostname/IP does not match certificate's altnames: Host: store.internal. is not in the cert's altnames: DNS:other.internal",
      "Hostname/IP does not match certificate's altnames: the host is not in the cert's altnames: [address]",
    ],
    [
      'listen EADDRINUSE: address already in use 127.0.0.1:8080',
      'listen EADDRINUSE: address already in use 127.0.0.1:8080',
    ],
  ])('K2: "%s" is written without the address of the store', (message, expected) => {
    const { logger, last, written } = recording();
    logger.error({ err: new Error(message) });
    expect(last()['err']).toMatchObject({ message: expected });
    logger.error(new Error(message));
    expect(last().msg).toBe(expected);
    expect(written.join('').match(/store\.internal|10\.1\.2\.3|fd00|:pw@/)).toBeNull();
  });
});

test('at a terminal a line is for a person: no JSON, no service and process, secrets hidden all the same', () => {
  const { logger, written } = recording({ format: createPrettyFormat({ colorize: false }) });
  logger.warn({ keyId: 'k_1', token: 'hunter2' }, 'look here');
  expect(written).toHaveLength(1);
  expect(written[0]).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] WARN: look here \{"keyId":"k_1","token":"\[hidden\]"\}\n$/);
});
