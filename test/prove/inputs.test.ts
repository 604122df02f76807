/** Whatever clients send, by malice or by chance: an answer as documented, and nothing of it anywhere else. */
import * as fc from 'fast-check';
import { beforeEach, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { ENDPOINTS } from '../http/common/endpoints.ts';
import {
  HOSTILE_HEADER_LINES,
  HOSTILE_HEADERS,
  HOSTILE_QUERIES,
  HOSTILE_REQUEST_LINES,
  HOSTILE_SEGMENTS,
} from '../http/common/hostile-inputs.ts';
import { routesOf } from '../support/document-requests.ts';
import { type Input, InputsWorld, knownPaths, TENANTS } from '../support/inputs-world.ts';
import { type Bar, count, prove } from './bar.ts';

/** Some at a time, so that a failure is found where it happens. */
const BATCH = 500;
const KNOWN = {
  workspaceId: TENANTS.map(({ workspaceId }) => workspaceId),
  reportId: TENANTS.flatMap(({ ids }) => ids),
  callId: TENANTS.flatMap(({ ids }) => ids),
  scorecardId: TENANTS.flatMap(({ scorecardIds }) => scorecardIds),
  search: TENANTS.map(({ marker }) => marker),
};

let world: InputsWorld;
beforeEach(async () => {
  world = await InputsWorld.start();
  onTestFinished(() => world.close());
});

/** Each of them at every endpoint. */
function hostile(): readonly Input[] {
  const [{ workspaceId, ids, scorecardIds } = { workspaceId: '', ids: [], scorecardIds: [] }] = TENANTS;
  const own = { workspaceId, id: ids[0] ?? '', scorecardId: scorecardIds[0] ?? '' };
  return ENDPOINTS.flatMap((endpoint) => [
    ...HOSTILE_SEGMENTS.flatMap((segment) => [
      { path: endpoint.path({ ...own, id: segment, scorecardId: segment }) },
      { path: endpoint.path({ ...own, workspaceId: segment }) },
      { path: `${endpoint.path(own)}?search=${segment}` },
      { path: endpoint.path(own), headers: { 'x-request-id': segment } },
    ]),
    ...HOSTILE_QUERIES.map((query) => ({ path: `${endpoint.path(own)}?${query}` })),
    ...HOSTILE_HEADERS.map(([name, value]) => ({ path: endpoint.path(own), headers: { [name]: value } })),
  ]);
}

function hostileBytes(key: string): readonly string[] {
  const rest = `Host: h\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`;
  return [
    ...HOSTILE_REQUEST_LINES.map((line) => `${line}\r\n${rest}`),
    ...HOSTILE_HEADER_LINES.flatMap((lines) =>
      knownPaths().map((path) => `GET ${path} HTTP/1.1\r\n${lines}\r\n${rest}`),
    ),
  ];
}

function barOf(name: string, what: string): Bar {
  const { statuses, faults } = world;
  const sent = [...statuses.values()].reduce((sum, one) => sum + one, 0);
  const byStatus = [...statuses].toSorted(([a], [b]) => a - b).map(([status, times]) => `${status}: ${count(times)}`);
  return {
    name,
    bar: `${what}: no 5xx, every answer as documented, nothing but the store's own addresses asked of it, no record of another tenant`,
    measured: `${count(sent)} requests (${byStatus.join(', ')}): ${faults[0] ?? 'all as they should be'}`,
    ok: faults.length === 0 && sent > 0,
  };
}

test('hostile inputs', async (context) => {
  await world.send(hostile());
  for (const bytes of hostileBytes(world.key)) await world.sendRaw(bytes);
  const different =
    // As ids, as searches and as request ids.
    3 * HOSTILE_SEGMENTS.length +
    HOSTILE_QUERIES.length +
    HOSTILE_HEADERS.length +
    HOSTILE_REQUEST_LINES.length +
    HOSTILE_HEADER_LINES.length;
  prove(
    context,
    barOf('hostile inputs', `${count(different)} hostile ids, queries, headers and request lines at every endpoint`),
  );
});

test('requests made from the OpenAPI document', async (context) => {
  const cases = 5000;
  const document = z
    .record(z.string(), z.unknown())
    .parse((await world.gateway.get('/openapi.json', { isUndocumented: true })).json);
  const routes = routesOf(document, KNOWN);
  for (const { requests } of routes) {
    for (let made = 0; made < cases && world.faults.length === 0; made += BATCH) {
      await world.send(fc.sample(requests, { numRuns: Math.min(BATCH, cases - made), seed: made + 1 }));
    }
  }
  const bar = barOf(
    'requests made from the OpenAPI document',
    `${count(cases)} cases for each of ${routes.length} routes, valid, at the bounds and beyond, by two tenants`,
  );
  const served = world.statuses.get(200) ?? 0;
  // Neither all refused nor all let through: the cases are about something.
  prove(context, { ...bar, ok: bar.ok && routes.length === 12 && served > (cases * routes.length) / 10 });
});
