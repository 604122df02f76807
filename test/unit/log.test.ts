/** The last line of defence of the log: secrets that code hands over by mistake. */
import { expect, test } from 'vitest';
import { createLogger } from '../../src/log/logger.ts';

const TOKEN = 'evg_0123456789abcdefghijABCDEFGHIJ0123456789';

function logged(fields: object): string {
  let text = '';
  createLogger({ level: 'info', destination: { write: (line) => (text += line) } }).info(fields);
  return text;
}

test.each([
  { token: TOKEN },
  { request: { authorization: `Bearer ${TOKEN}` } },
  { call: { request: { url: `https://store.internal/keys/${TOKEN}` } } },
])('K2: the members of %j that hold secrets are hidden', (fields) => {
  expect(logged(fields)).toContain('"[hidden]"');
  expect(logged(fields)).not.toContain(TOKEN);
});

test.each([
  new Error(`the store refused ${TOKEN}`),
  new Error('no', { cause: new Error(`sent Bearer ${TOKEN} to https://store.internal/keys/${TOKEN}`) }),
  new AggregateError([new Error(`Basic ${TOKEN}`)], 'all failed'),
])('K2: an error is written without keys, credentials and addresses: %s', (error) => {
  const line = logged({ err: error });
  expect(line).not.toContain(TOKEN);
  expect(line).not.toContain('store.internal');
  expect(line).toMatch(/\[hidden\]|\[address\]/);
});
