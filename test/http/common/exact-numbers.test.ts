/** Numbers in what is published unchanged (`deal_insights`, a rubric's `content`) keep the text that the store sent. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { BACKENDS, World, type Reader } from '../../support/world.ts';
import { type EndpointRow, GET_CALL_SCORECARD, GET_REPORT_DEAL_INSIGHTS, GET_RUBRIC } from './endpoints.ts';

/** As the store writes them. */
const EXACT = [
  '9007199254740993',
  '-9007199254740993',
  '18446744073709551615',
  '1e400',
  '-1E+400',
  '1e-400',
  '0.1234567890123456789',
  '123456789012345678901234567890.5',
  '1.0000000000000000000000000001',
  `1${'0'.repeat(400)}`,
  '-0.00000000000000000000',
];
/** A double holds these, so they are written as it is. */
const PLAIN = ['0', '-1', '1.5', '9007199254740991', '0.1', '0.30000000000000004', '123456789012345', '5e-324'];

const OPEN: readonly (readonly [endpoint: EndpointRow, member: string, name: string])[] = [
  [GET_REPORT_DEAL_INSIGHTS, 'insights', '"deal_insights":'],
  [GET_RUBRIC, 'rubric', '"content":'],
];

let world: World;

/** The store answers with its own record, whose member is that text. */
function answerWith({ subject }: Reader, member: string, text: string): () => void {
  const [table, id] =
    member === 'rubric' ? [world.store.scorecards, subject.scorecardId] : [world.store.dealInsights, subject.id];
  const body = JSON.stringify({ ...Object(table.get(id)), [member]: {} }).replace(
    `"${member}":{}`,
    () => `"${member}":${text}`,
  );
  return world.store.override(new RegExp(id), (request, response) => {
    const isSame = request.headers['if-none-match'] === '"same"';
    response.writeHead(isSame ? 304 : 200, { etag: '"same"' }).end(isSame ? undefined : body);
  });
}

describe.each(BACKENDS)('with %s', (kind) => {
  beforeAll(async () => {
    world = await World.start(kind);
    return () => world.close();
  });
  beforeEach(() => world.clock.advance(1000));

  test.each(OPEN)('%o: from the store, memory, the shared cache, after a 304 and in each coding', async (...row) => {
    const [endpoint, member, name] = row;
    const reader = await world.reader(endpoint);
    const text = `{"list":[${[...EXACT, ...PLAIN].join(',')}],"deep":{"__proto__":9007199254740993,"a":[[1e400]]},"text":"1e400 9007199254740993","padding":"${'x'.repeat(20_000)}"}`;
    const end = answerWith(reader, member, text);
    const texts = [(await reader.ask(world.here)).text];
    for (const gateway of [world.here, world.there]) texts.push((await reader.ask(gateway)).text);
    // Past its freshness it is confirmed by a 304.
    world.clock.advance(2 * 3_600_000);
    for (const gateway of [world.here, world.there]) texts.push((await reader.ask(gateway)).text);
    for (const coding of ['br', 'zstd', 'gzip']) {
      const headers = { 'accept-encoding': coding };
      const reply = await world.here.get(reader.path, { key: reader.key, headers });
      expect(reply.headers['content-encoding']).toBe(coding);
      texts.push(reply.text);
    }
    end();
    expect(texts[0]).toContain(`${name}${text}`);
    expect(new Set(texts).size).toBe(1);
    expect(reader.calls()).toBe(2);
  });

  test('a refresh that brings the same numbers is no change, and one that brings others is', async () => {
    const reader = await world.reader(GET_RUBRIC);
    const etagOf = async (): Promise<unknown> => (await world.here.get(reader.path, { key: reader.key })).headers.etag;
    const etags: unknown[] = [];
    for (const id of ['9007199254740993', '9007199254740993', '9007199254740992']) {
      world.store.override(new RegExp(reader.subject.scorecardId), (_request, response) => {
        const record: unknown = world.store.scorecards.get(reader.subject.scorecardId);
        const body = JSON.stringify({ ...Object(record), rubric: {} }).replace('"rubric":{}', `"rubric":{"id":${id}}`);
        response.writeHead(200).end(body);
      });
      etags.push(await etagOf());
      world.clock.advance(2 * 3_600_000);
    }
    expect([etags[0] === etags[1], etags[1] === etags[2]]).toEqual([true, false]);
  });
});

describe('what is not JSON stays so', () => {
  beforeAll(async () => {
    world = await World.start('memory');
    return () => world.close();
  });

  test.each([
    '00000000000000000001',
    '-e5',
    '1e',
    '1.2.3e4',
    '1234567890123456789-',
    '12345678901234567.',
    '0123e4',
    '-',
  ])('a number that is none: %s', async (number) => {
    const reader = await world.reader(GET_REPORT_DEAL_INSIGHTS);
    const end = answerWith(reader, 'insights', `{"a":${number}}`);
    expect((await reader.ask()).status).toBe(500);
    end();
  });

  test('a number where the interface has another type is still one', async () => {
    const reader = await world.reader(GET_REPORT_DEAL_INSIGHTS);
    const end = answerWith(reader, 'permalink', '9007199254740993');
    expect((await reader.ask()).status).toBe(500);
    end();
  });

  test('other records are read as everywhere: a score that a double cannot hold is the nearest one', async () => {
    const reader = await world.reader(GET_CALL_SCORECARD);
    const record = JSON.stringify(world.store.scoredCards.get(reader.subject.id));
    const body = record.replace(/"score":("[^"]*"|[\d.]+)/, '"score":9007199254740993');
    const end = world.store.answer(new RegExp(reader.subject.id), body);
    expect((await reader.ask()).text).toContain('"score":"9007199254740992"');
    end();
  });
});
