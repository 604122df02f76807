import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createLogger, type LogOptions } from '../../../src/log/logger.ts';
import { createPrettyFormat } from '../../../src/log/pretty.ts';
import { createRequestLog, type RequestLine } from '../../../src/log/request-line.ts';

const LINE: RequestLine = {
  requestId: 'r-1',
  keyId: 'key_1',
  surface: 'v1',
  route: '/v1/workspaces/{workspaceId}/reports',
  method: 'GET',
  status: 200,
  durationMs: 1.25,
  cache: 'hit',
};

function recording(options: Partial<LogOptions> = {}) {
  const written = new Array<string>();
  const destination = { write: (text: string) => void written.push(text) };
  const logger = createLogger({ level: 'info', destination, ...options });
  return { logger, log: createRequestLog(logger), written };
}

function withoutTime(text: string | undefined): unknown {
  const { time, ...rest } = z.looseObject({ time: z.string() }).parse(JSON.parse(text ?? ''));
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  return rest;
}

test.each([
  LINE,
  { ...LINE, keyId: null, route: null, cache: null },
  { ...LINE, keyId: 'of the store: "quoted"\n', method: 'M-SEARCH', durationMs: 0 },
])('a request has the line that the logger would have written', async (line) => {
  const { logger, log, written } = recording();
  log(line);
  await turn();
  logger.info(line, 'request');
  expect(withoutTime(written[0])).toEqual(withoutTime(written[1]));
});

test.each([
  [0, '0.000'],
  [0.0004, '0.000'],
  [0.0005, '0.001'],
  [1.25, '1.250'],
  [1.5, '1.500'],
  [9.0996, '9.100'],
  [0.9999, '1.000'],
  [12_345.678_9, '12345.679'],
  [-0.25, '0.000'],
])('a duration of %d ms is written as %s', async (durationMs, text) => {
  const { log, written } = recording();
  log({ ...LINE, durationMs });
  await turn();
  expect(/"durationMs":([^,]+),/.exec(written[0] ?? '')?.[1]).toBe(text);
});

test('the lines of one turn of the event loop are written in one piece, in their order', async () => {
  const { log, written } = recording();
  for (const requestId of ['a', 'b', 'c']) log({ ...LINE, requestId });
  expect(written).toEqual([]);
  await turn();
  expect(written).toHaveLength(1);
  expect(written[0]?.match(/"requestId":"\w"/g)).toEqual(['"requestId":"a"', '"requestId":"b"', '"requestId":"c"']);
  log(LINE);
  await turn();
  expect(written).toHaveLength(2);
});

test('nothing is written above the level info', async () => {
  const { logger, log, written } = recording({ level: 'warn' });
  log(LINE);
  await turn();
  expect(written).toEqual([]);
  logger.level = 'info';
  log(LINE);
  await turn();
  expect(written).toHaveLength(1);
});

test('K2: what looks like a key in a request id is hidden', async () => {
  const { log, written } = recording();
  log({ ...LINE, requestId: `id-evg_${'a'.repeat(38)}` });
  await turn();
  expect(written.join('')).toContain('id-[hidden]');
});

test('people get a line each', async () => {
  const { log, written } = recording({ format: createPrettyFormat({ colorize: false }) });
  log({ ...LINE, requestId: 'first' });
  log({ ...LINE, requestId: 'second' });
  await turn();
  expect(written).toHaveLength(2);
  expect(written[0]).toContain('first');
  expect(written[1]).toContain('second');
});
