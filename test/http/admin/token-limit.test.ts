/** Wrong admin tokens: 60 a minute per address; tokens that can be guessed: a warning. */
import { expect, test } from 'vitest';
import { forTest } from '../../support/opened.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { GatewayProcess } from '../../support/process.ts';

const LIMIT = 60;
const TOKEN = 'correct-horse';
const KNOWN = { authorization: `Bearer ${TOKEN}` };
const UNKNOWN = { authorization: 'Bearer wrong-horse' };
const TOO_MANY =
  'Too many requests from this address had no valid admin token. Try again later, or send one of the tokens of ADMIN_TOKEN.';

let gateway: TestGateway;

async function start(env: Readonly<Record<string, string>> = {}) {
  gateway = await forTest(startTestGateway({ env: { ADMIN_TOKEN: TOKEN, ...env } }));
  const { adminUrl } = gateway;
  return async (headers: Readonly<Record<string, string>>, path = '/api/keys') => {
    const reply = await fetch(`${adminUrl}${path}`, { headers });
    return { status: reply.status, headers: reply.headers, text: await reply.text() };
  };
}

type Ask = Awaited<ReturnType<typeof start>>;

/** Requests with a wrong token, as many as are allowed; none of them is limited. */
async function useUp(ask: Ask, headers: Readonly<Record<string, string>> = UNKNOWN): Promise<void> {
  const replies = await Promise.all(Array.from({ length: LIMIT }, () => ask(headers)));
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 401));
  expect(replies.filter((reply) => reply.headers.has('retry-after'))).toEqual([]);
}

test('after 60 in a minute, further ones are refused with Retry-After', async () => {
  const ask = await start();
  await useUp(ask);
  const refused = await ask(UNKNOWN);
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="evalgate admin"');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  expect(JSON.parse(refused.text)).toEqual({ error: { message: TOO_MANY } });
});

test('requests without a token count as well', async () => {
  const ask = await start();
  await useUp(ask, {});
  expect((await ask({})).headers.has('retry-after')).toBe(true);
});

test('a right token is never refused for its address, and costs nothing', async () => {
  const ask = await start();
  const right = await Promise.all(Array.from({ length: LIMIT + 1 }, () => ask(KNOWN)));
  expect(new Set(right.map(({ status }) => status))).toEqual(new Set([200]));
  await useUp(ask);
  expect((await ask(UNKNOWN)).headers.has('retry-after')).toBe(true);
  expect((await ask(KNOWN)).status).toBe(200);
});

test('probes and the dashboard, which need no token, stay open', async () => {
  const ask = await start();
  await useUp(ask);
  await ask(UNKNOWN);
  const open = await Promise.all(['/livez', '/readyz', '/'].map((path) => ask({}, path)));
  expect(open.map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('behind a trusted proxy each client has its own limit', async () => {
  const ask = await start({ TRUSTED_PROXIES: '127.0.0.0/8' });
  await useUp(ask, { ...UNKNOWN, 'x-forwarded-for': '192.0.2.1' });
  const first = await ask({ ...UNKNOWN, 'x-forwarded-for': '192.0.2.1' });
  const second = await ask({ ...UNKNOWN, 'x-forwarded-for': '192.0.2.2' });
  expect([first.headers.has('retry-after'), second.headers.has('retry-after')]).toEqual([true, false]);
});

/** How often it is warned of at the start. */
async function warned(env: Readonly<Record<string, string>>): Promise<number> {
  const running = await GatewayProcess.start({ env: { DRAIN_DELAY: '0s', ...env } });
  await running.stop();
  return running.log.filter((line) => line.includes('tokens of fewer than 16 characters can be guessed: admin')).length;
}

test('a token that can be guessed is warned of at the start if other machines reach the listener', async () => {
  expect(await warned({ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: TOKEN })).toBe(1);
  expect(await warned({ ADMIN_TOKEN: TOKEN })).toBe(0);
});
