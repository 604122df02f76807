import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { samplesOf } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { isFaint, textsOf } from './contrast.ts';
import { closeBrowser, filled, goTo, openDashboard, startBusy, startIdle } from './rig.ts';

let busy: TestGateway;
beforeAll(async () => {
  busy = (await startBusy()).gateway;
});
afterAll(async () => {
  await closeBrowser();
  await busy.close();
});

const VIEWS = ['health', 'cache', 'keys'] as const;
const PANELS = {
  health: [
    'Now',
    'Requests and read times',
    'By class',
    'Readiness',
    'State changes',
    'Calls to the store',
    'Requests by status',
    'Records left out of lists',
    'By API key',
    'By workspace',
    'Memory',
    'Processes',
  ],
  cache: ['TTLs', 'What if', 'Why reads miss', 'Top by store load', 'Purge', 'Maintenance', 'Explain a path'],
  keys: ['Keys', 'Audit'],
};

/** The names of tables in which a column's name is not aligned as its cells. It runs in the page. */
function crookedOf(tables: readonly Element[]): readonly (string | null)[] {
  return tables
    .filter((table) => {
      const [head, body] = ['thead', 'tbody'].map((part) =>
        [...table.querySelectorAll(`${part} tr:first-child > :not(.actions)`)]
          .map((cell) => getComputedStyle(cell).textAlign)
          .join(' '),
      );
      return head !== body;
    })
    .map((table) => table.ariaLabel);
}

describe.each(VIEWS)('the view %s', (view) => {
  test('has its panels, filled, without trouble; texts of enough contrast; a name for every control; it fits any width', async () => {
    const page = await openDashboard(busy, view);
    await filled(page);
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).toEqual(PANELS[view]);
    expect(await page.locator('.trouble').count()).toBe(0);
    expect(await page.locator('body').textContent()).not.toMatch(/NaN|undefined|Infinity|\[object/);

    // WCAG AA, in both themes.
    for (const theme of ['light', 'dark']) {
      await page.evaluate((name) => (document.documentElement.dataset['theme'] = name), theme);
      const texts = await textsOf(page);
      expect(texts.length).toBeGreaterThan(8);
      expect(texts.filter(isFaint)).toEqual([]);
    }

    // The name of a column stands over its cells.
    const crooked = await page.locator('main table[aria-label]').evaluateAll(crookedOf);
    expect(crooked).toEqual([]);

    for (const width of [360, 390, 768, 1100, 1600]) {
      await page.setViewportSize({ width, height: 800 });
      await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    }

    // For those who listen to it.
    if (view === 'keys') await page.getByRole('button', { name: 'Create a key …' }).click();
    const controls = 'button|textbox|slider|radio|checkbox|combobox|link|spinbutton|switch|option';
    const outline = await page.locator('body').ariaSnapshot();
    const lines = outline.split('\n').filter((line) => new RegExp(`^\\s*- (?:${controls})\\b`).test(line));
    expect(lines.length).toBeGreaterThan(2);
    expect(lines.filter((line) => !new RegExp(`- (?:${controls}) "`).test(line))).toEqual([]);
    const landmarks = ['header', 'nav', 'main', 'h1'].map((name) => page.locator(name).count());
    expect(await Promise.all(landmarks)).toEqual([1, 1, 1, 1]);
  });

  test('says of a gateway that has not read anything what there is to say', async () => {
    const gateway = await forTest(startIdle());
    const page = await openDashboard(gateway, view);
    await filled(page);
    const sentences = { health: '0 in the last minute', cache: 'No predictions for', keys: 'Nothing was changed yet.' };
    await page.getByText(sentences[view]).waitFor();
    expect(await page.locator('.trouble').count()).toBe(0);
    expect(await page.locator('body').textContent()).not.toMatch(/NaN|undefined|Infinity|\[object/);
  });
});

test('the numbers of Health are those of the gateway', async () => {
  const page = await openDashboard(busy, 'health');
  await filled(page);
  await page.getByText('Ready', { exact: true }).waitFor();
  const tile = page.locator('.tile', { hasText: 'Hit ratio' }).locator('.tile-value');
  expect(await tile.textContent()).toMatch(/^\d+(\.\d+)?\s%$/);
  expect(await page.locator('#traffic canvas, #hour canvas').count()).toBe(4);
  const statuses = page.getByRole('table', { name: 'Requests by status' }).locator('tbody tr');
  expect(await statuses.locator('th').allTextContents()).toEqual(['200']);
  const rows = page.getByRole('table', { name: 'Classes' }).locator('tbody tr');
  expect(await rows.locator('th').allTextContents()).toContain('evaluation');
  const cells = rows.filter({ hasText: 'evaluation' }).locator('td');
  expect(await cells.count()).toBe(8);
  expect(await cells.nth(1).textContent()).toMatch(/%$/);
  // The latency comes with a call of its own.
  await expect.poll(() => cells.last().textContent()).toMatch(/s$/);
  expect(await page.getByRole('table', { name: 'Processes' }).locator('tbody tr').count()).toBe(1);
});

test('there is one row for each distinct prediction', async () => {
  const page = await openDashboard(busy, 'cache');
  await filled(page);
  await page.getByText('All predictions as a table').click();
  const rows = await page
    .getByRole('table', { name: 'Predictions' })
    .locator('tbody tr')
    .evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent).join(' ')));
  expect(rows.length).toBeGreaterThan(2);
  expect(rows.filter((row, at) => row === rows[at - 1])).toEqual([]);
});

test('while every read fails, the page does not say that requests are served', async () => {
  const gateway = await forTest(startIdle());
  const key = await gateway.issueKey({ workspaceIds: [WORKSPACE_A] });
  gateway.store.fail(503);
  expect(await gateway.get('/v2/calls', { key })).toMatchObject({ status: 500 });
  const page = await openDashboard(gateway, 'health');
  await page.getByText('Degraded', { exact: true }).waitFor();
  expect(await page.locator('.status').textContent()).toMatch(/Degraded Some requests may fail\. In trouble: store\./);
});

test('what matters is on the first screen: the trouble with cause, impact and runbook, and the charts of requests', async () => {
  const gateway = await forTest(startIdle());
  const key = await gateway.issueKey({ workspaceIds: [WORKSPACE_A] });
  gateway.store.fail(503);
  await gateway.get('/v2/calls', { key });
  const page = await openDashboard(gateway, 'health', { viewport: { width: 1360, height: 900 } });
  const trouble = page.locator('.status li');
  await trouble.getByText('last call failed: the store answered with 503').waitFor();
  expect(await trouble.textContent()).toMatch(/^store since .*Copies are served.*Runbook: store$/s);
  expect(await trouble.getByRole('link').getAttribute('href')).toMatch(/runbook\.md#evalgatestoredown$/);
  for (const theme of ['light', 'dark']) {
    await page.evaluate((name) => (document.documentElement.dataset['theme'] = name), theme);
    expect((await textsOf(page)).filter(isFaint)).toEqual([]);
  }
  const { y = 0, height = 0 } = (await page.locator('#traffic .charts').boundingBox()) ?? {};
  expect(y + height).toBeLessThanOrEqual(900);
});

test('lost keys make the headline red, and lead to their own section of the runbook', async () => {
  const redis = await forTest(startRedis());
  const gateway = await forTest(startIdle({ REDIS_URL: redis.url }));
  await gateway.issueKey();
  // Keys are counted every second.
  await expect.poll(() => samplesOf(gateway, 'evalgate_keys'), { timeout: 10_000 }).toMatchObject({ evalgate_keys: 1 });
  await redis.flush();
  const page = await openDashboard(gateway, 'health');
  const trouble = page.locator('.status li', { hasText: 'Redis lost its data' });
  await trouble.getByText('Every consumer gets 401 until the keys are imported.').waitFor();
  expect(await trouble.getByRole('link').getAttribute('href')).toMatch(/runbook\.md#evalgatekeyslost$/);
  // The severity is asked for apart, a moment later.
  await page.locator('.status', { hasText: /^Failing Most requests fail\. In trouble: keys/ }).waitFor();
});

test('charts show the values at the pointer, and another range when it is chosen', async () => {
  const page = await openDashboard(busy, 'health');
  await filled(page);
  const chart = page.getByRole('figure', { name: 'Requests' });
  await chart.getByText('average of 2 minutes').waitFor();
  await chart.locator('.u-over').hover();
  // With the day shortly after midnight.
  await expect
    .poll(() => chart.locator('.u-legend').textContent())
    .toMatch(/At(?:\d+ \w+, \d\d:\d\d|\d\d:\d\d:\d\d).*200/);
  await page.getByRole('button', { name: 'Show 24 h' }).click();
  await chart.getByText('average of 10 minutes').waitFor();
});

test('the theme that is chosen is kept', async () => {
  const page = await openDashboard(busy, 'health', { colorScheme: 'light' });
  const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole('button', { name: 'Theme: system' }).click();
  expect(await ground()).toBe(light);
  await page.getByRole('button', { name: 'Theme: light' }).click();
  const dark = await ground();
  expect(dark).not.toBe(light);
  await page.reload();
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
  expect(await ground()).toBe(dark);
});

test('while the gateway is away the last numbers stay, greyed and dated; once it is back they move again', async () => {
  const gateway = await startIdle();
  const { port } = new URL(gateway.adminUrl);
  const page = await openDashboard(gateway, 'health', {
    tolerated: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|503 \(/,
  });
  await filled(page);
  await gateway.close();
  await page.getByText('No answer', { exact: true }).waitFor();
  await page.locator('.status').getByText('The gateway can’t be reached. What is shown is from').waitFor();
  const instances = page.getByRole('region', { name: 'Processes' });
  await instances.getByText('As of').waitFor();
  await instances.getByRole('button', { name: 'Try again' }).waitFor();
  expect(await instances.getAttribute('data-state')).toBe('old');
  expect(await instances.locator('tbody tr').count()).toBe(1);
  await expect.poll(() => page.title()).toBe('No answer · evalgate');

  await forTest(startIdle({ ADMIN_PORT: port }));
  await page.getByText('Ready', { exact: true }).waitFor();
  await expect.poll(() => page.locator('.panel[data-state="old"], .trouble').count()).toBe(0);
  expect(await page.title()).toBe('evalgate');
});

function keyOf(name: string): object {
  const rights = { workspaceIds: [WORKSPACE_A], scopes: ['calls.read'], limits: { perMinute: null, perHour: null } };
  const times = { createdAt: '2026-01-15T12:00:00.000Z', expiresAt: null, lastUsedAt: null, from: null };
  return { keyId: `key_${name}`, name, status: 'active', ...rights, ...times };
}

describe('answers of newer gateways', () => {
  test('keys that come in pages are all shown', async () => {
    const page = await openDashboard(busy, 'keys');
    await page.route(/\/api\/keys\?limit=1000$/, (route) =>
      route.fulfill({ json: { keys: [keyOf('one')], nextCursor: 'next page' } }),
    );
    await page.route(/\/api\/keys\?limit=1000&cursor=next\+page$/, (route) =>
      route.fulfill({ json: { keys: [keyOf('two')], nextCursor: null } }),
    );
    await page.reload();
    await page.getByText('key_one').waitFor();
    await page.getByText('key_two').waitFor();
    expect(await page.getByRole('table', { name: 'Keys' }).locator('tbody tr').count()).toBe(2);
  });

  test('a TTL that ends shows when', async () => {
    const page = await openDashboard(busy, 'cache');
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const source = { fresh: 'set', stale: 'default', error: 'default' };
    const row = {
      class: 'list',
      fresh: '1m',
      stale: '5m',
      error: '1h',
      freshMs: 60_000,
      staleMs: 300_000,
      errorMs: 3_600_000,
    };
    const ends = { until: { fresh: until, stale: null, error: null }, setBy: 'night', setAt: until };
    await page.route('**/api/cache/ttl', (route) =>
      route.fulfill({ json: { classes: [{ ...row, source, ...ends }] } }),
    );
    await page.reload();
    await page.getByText('set until').waitFor();
    expect(await page.getByRole('table', { name: 'TTLs' }).locator('td').first().textContent()).toMatch(
      /^1\smin set until \d/,
    );
  });

  test('an answer of another shape is said to be one, in its panel only', async () => {
    const page = await openDashboard(busy, 'keys');
    await page.route('**/api/audit', (route) => route.fulfill({ json: { entries: [{ at: 'yesterday' }] } }));
    await page.reload();
    const audit = page.getByRole('region', { name: 'Audit' });
    await audit.getByText('The answer is not as this page expects. Reload the page.').waitFor();
    expect(await page.locator('.trouble').count()).toBe(1);
  });
});

test('the way between the views is in the address', async () => {
  const page = await openDashboard(busy, 'health');
  await goTo(page, 'Keys');
  expect(new URL(page.url()).hash).toBe('#keys');
  await page.reload();
  await page.getByRole('region', { name: 'Audit' }).waitFor();
  await page.goBack();
  await page.getByRole('region', { name: 'Readiness' }).waitFor();
});
