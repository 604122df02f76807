/**
 * The state that processes share in Redis, byte by byte: other processes, of this release and of the ones beside it, read
 * it. Random words are replaced; a change of anything else is a change of the format.
 */
import { afterAll, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { startTestGateway } from '../support/gateway.ts';
import { JOURNAL, STATE } from '../support/journal.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const messages: string[] = [];

const redis = await forFile(startRedis());
const raw = await connectWhenUp(redis.url);
afterAll(() => raw.disconnect());
const gateway = await forFile(startTestGateway({ env: { REDIS_URL: redis.url } }));

/** Histories are UUIDs, words of events are 12 digits of base64url. */
function golden(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/^[\w-]{12}$/g, '<word>')
    .replaceAll(/(?<=^[0-9]+ )[\w-]{12}$/g, '<word>')
    .replaceAll(/(?<=^[0-9]+ [0-9]+ )[0-9]{13}$/g, '<time>');
}

async function change(method: string, path: string, body?: unknown): Promise<void> {
  expect((await gateway.admin(method, `/api/cache/${path}`, body)).status).toBe(200);
}

async function state(): Promise<Record<string, string>> {
  const fields = await raw.hgetall(STATE);
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, golden(value)]));
}

/** The events since the last call, each with its id and fields. */
async function appended(): Promise<readonly string[]> {
  const entries = await raw.xrange(JOURNAL, '-', '+');
  const texts = entries.map(([id, fields]) => [id, ...fields.map(golden)].join(' '));
  const fresh = texts.slice(messages.length);
  messages.push(...fresh);
  return fresh;
}

test('a new history', async () => {
  expect(await state()).toEqual({ history: '<uuid>', last: '1 <uuid>' });
  expect(await appended()).toEqual(['1-0 word <uuid> after  event ']);
});

test('purges', async () => {
  await change('POST', 'purge', { tags: ['evaluation:ev_1', 'scorecard:sc_1'], exact: true });
  await change('POST', 'purge', { tags: ['class:list'], mode: 'soft' });
  // The first one has deleted what it ended; a soft one deletes nothing.
  expect(await state()).toEqual({
    history: '<uuid>',
    last: '4 <word>',
    'purge:evaluation:ev_1': '0 2 <time>',
    'purge:scorecard:sc_1': '0 2 <time>',
    'purge:class:list': '4 0 <time>',
    swept: '2',
  });
  expect(await appended()).toEqual([
    '2-0 word <word> after <uuid> event {"kind":"purge","tags":["evaluation:ev_1","scorecard:sc_1"],"mode":"hard"}',
    '3-0 word <word> after <word> event {"kind":"swept","upTo":2}',
    '4-0 word <word> after <word> event {"kind":"purge","tags":["class:list"],"mode":"soft"}',
  ]);
});

test('TTLs that are set, for good and for a while', async () => {
  await change('PUT', 'ttl/list', { fresh: '45s', stale: '0s' });
  await change('PUT', 'ttl/list', { fresh: '60s', error: '2h', for: '1h' });
  const set = [
    '{"name":"freshMs","ms":45000,"untilMs":null}',
    '{"name":"staleMs","ms":0,"untilMs":null}',
    '{"name":"freshMs","ms":60000,"untilMs":1768482000000}',
    '{"name":"errorMs","ms":7200000,"untilMs":1768482000000}',
  ];
  expect((await state())['times:list']).toEqual(`[${set.join(',')}]`);
  await change('PUT', 'ttl/list', { error: '3h' });
  expect((await state())['times:list']).toEqual(
    `[${set.slice(0, 3).join(',')},{"name":"errorMs","ms":10800000,"untilMs":null}]`,
  );
  await change('DELETE', 'ttl/list');
  expect((await state())['times:list']).toBeUndefined();
  expect(await appended()).toEqual([
    `5-0 word <word> after <word> event {"kind":"times","class":"list","overrides":[${set.slice(0, 2).join(',')}]}`,
    expect.stringContaining('6-0'),
    expect.stringContaining('7-0'),
    '8-0 word <word> after <word> event {"kind":"times","class":"list","overrides":[]}',
  ]);
});

test('maintenance', async () => {
  await change('PUT', 'maintenance', { for: '30m' });
  const maintenance = '{"sinceMs":1768478400000,"untilMs":1768480200000,"by":"anonymous"}';
  expect((await state())['maintenance']).toBe(maintenance);
  await change('DELETE', 'maintenance');
  expect((await state())['maintenance']).toBeUndefined();
  expect(await appended()).toEqual([
    `9-0 word <word> after <word> event {"kind":"maintenance","maintenance":${maintenance}}`,
    '10-0 word <word> after <word> event {"kind":"maintenance","maintenance":null}',
  ]);
});

test('the journal never expires', async () => {
  for (const name of [STATE, JOURNAL]) expect(await raw.pttl(name)).toBe(-1);
});
