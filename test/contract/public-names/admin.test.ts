/** The routes of the admin listener: what they take, what they answer, and what they refuse. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { type AdminRoute, PROBES, ROUTES } from '../../../src/operations/api.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { startRedis } from '../../support/redis.ts';
import { describeAdminApi } from './admin-page.ts';
import { expectPinned } from './pin.ts';
import { shapeOf } from './shape.ts';
import { askEverything, type Exchange, startBusyGateway } from './world.ts';

const refusal = z.object({ error: z.object({ message: z.string() }) });

const redis = await forFile(startRedis());
// Without reads, most of its values are null.
const idle = await forFile(startTestGateway());
const gateways = [idle, await forFile(startBusyGateway()), await forFile(startBusyGateway({ REDIS_URL: redis.url }))];
const exchanges: Exchange[] = [];
for (const gateway of gateways) exchanges.push(...(await askEverything(gateway)));

/** The routes that the dashboard lists. */
async function routes(): Promise<readonly string[]> {
  const { text: page } = await idle.admin('GET', '/');
  return [...page.matchAll(/<tr><td>([A-Z]+)<\/td><td><code>([^<]+)<\/code>/g)].map(
    ([, method, path]) => `${method} ${path}`,
  );
}

test('routes, bodies, answers and refusals are as pinned, with Redis and without', async () => {
  const listed = await routes();
  expect(exchanges.map(({ route }) => route).filter((route) => !listed.includes(route))).toEqual([]);
  await expectPinned('admin.txt', ['GET /', ...listed.flatMap(linesOf)]);
});

test('every answer is as its route declares it: nothing is left out, and nothing else is in it', () => {
  const declared = new Map(
    Object.values<AdminRoute>({ ...PROBES, ...ROUTES }).map((route) => [`${route.method} ${route.path}`, route]),
  );
  const asked = new Set<string>();
  for (const { route, status, answer } of exchanges.filter((exchange) => exchange.status < 300)) {
    const { status: success = 200, answer: schema = null } = declared.get(route) ?? {};
    asked.add(route);
    expect([route, status, schema === null ? answer : schema.parse(answer)]).toEqual([route, success, answer]);
  }
  expect([...declared.keys()].filter((route) => !asked.has(route))).toEqual(['GET /metrics']);
});

test('docs/admin-api.md is what the declarations make', async () => {
  await expect(describeAdminApi()).toMatchFileSnapshot(join(import.meta.dirname, '../../../docs/admin-api.md'));
});

function linesOf(route: string): readonly string[] {
  const own = exchanges.filter((exchange) => exchange.route === route);
  if (route === 'GET /metrics') return ['', route, '    see metrics.txt'];
  if (route === 'GET /openapi.json') return ['', route, '    see docs/admin-api.md'];
  const good = own.filter(({ status }) => status < 300);
  const bodies = good.flatMap(({ body }) => (body === undefined ? [] : [body]));
  const refused = own.flatMap(({ status, answer }) => {
    const { success, data } = refusal.safeParse(answer);
    const message = data?.error.message.replaceAll(/key_\w{12}/g, 'key_...').replaceAll('\n', '\n        ');
    return success ? [`    ${status}: ${message}`] : [];
  });
  const statuses = [...new Set(good.map(({ status }) => status))].join(', ');
  return [
    '',
    route,
    ...(bodies.length === 0 ? [] : ['    takes', ...shapeOf(bodies).map((line) => `        ${line}`)]),
    `    ${statuses === '' ? 'is not asked' : `answers ${statuses}`}`,
    ...shapeOf(good.map(({ answer }) => (route === 'GET /api/config' ? oneSetting(answer) : answer))).map(
      (line) => `        ${line}`,
    ),
    ...new Set(refused),
  ];
}

/** The others are in configuration.txt, and each has the same members. */
function oneSetting(answer: unknown): unknown {
  const { file, settings } = z
    .object({ file: z.string(), settings: z.object({ redis: z.object({ url: z.unknown() }) }) })
    .parse(answer);
  return { file, settings };
}
