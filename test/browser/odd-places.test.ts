/** The dashboard where it is harder: on a phone, in a browser without a usable language, while the store is down, in forms. */
import { afterAll, expect, test } from 'vitest';
import { forFile, forTest } from '../support/opened.ts';
import { startRedis } from '../support/redis.ts';
import { closeBrowser, filled, openDashboard, startBusy, startIdle } from './rig.ts';

afterAll(closeBrowser);

const { gateway: busy } = await startBusy();
await forFile(busy);

test('charts are drawn in a browser whose language Intl refuses', async () => {
  const page = await openDashboard(busy, 'health');
  await page.addInitScript(`Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix' })`);
  await page.reload();
  await filled(page);
  expect(await page.locator('#traffic .u-wrap').count()).toBe(2);
});

test('on a phone Health is at most three screens, and classes without reads are named in a line', async () => {
  const page = await openDashboard(busy, 'health', { viewport: { width: 390, height: 844 } });
  await filled(page);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  expect(height).toBeLessThanOrEqual(3 * 844);
  expect(await page.getByRole('table', { name: 'Classes' }).locator('tbody tr').count()).toBe(1);
  await page.getByText('No reads: list, transcript, scorecard, rubric, dealInsights, notFound.').waitFor();
});

test('one Redis for both roles is one row', async () => {
  const redis = await forTest(startRedis());
  const gateway = await forTest(startIdle({ REDIS_URL: redis.url }));
  const page = await openDashboard(gateway, 'health');
  await filled(page);
  const names = page.getByRole('table', { name: 'Memory' }).locator('tbody th');
  await expect.poll(() => names.allTextContents()).toEqual(['this process', 'Redis, state and cache']);
});

test('while the store is down the tiles say how old answers are, and that none is fresh', async () => {
  const { gateway, key } = await startBusy();
  await forTest(Promise.resolve(gateway));
  // Long enough that no read of before counts as of this minute, and every copy is stale.
  gateway.clock.advance(600_000);
  gateway.store.fail(503);
  for (let read = 0; read < 10; read += 1) expect((await gateway.get('/v2/calls/ev_1', { key })).status).toBe(200);
  const page = await openDashboard(gateway, 'health');
  // The browser's clock stands where the gateway's does.
  await page.clock.setFixedTime(gateway.clock.nowMs());
  await page.reload();
  await filled(page);
  const tile = (name: string) => page.locator('.tile', { has: page.getByText(name, { exact: true }) });
  await expect.poll(() => tile('Served fresh').innerText()).toMatch(/^Served fresh\s+0\s%\s+10 stale, 0 because/);
  expect(await tile('Hit ratio').innerText()).toMatch(/^Hit ratio\s+100\s%\s+served without waiting, fresh or stale/);
  expect(await tile('Age p90').innerText()).toMatch(/^Age p90\s+1\d\smin/);
});

test('faults of a form stand at their fields, in its words, and the first of them has the focus', async () => {
  const page = await openDashboard(busy, 'keys', { tolerated: /400 \(Bad Request\)/ });
  await filled(page);
  await page.getByRole('button', { name: 'Create a key …' }).click();
  const dialog = page.getByRole('dialog');
  const faultOf = (label: string) =>
    dialog.locator('.field', { has: page.getByLabel(label, { exact: true }) }).locator('.fault');
  await dialog.getByLabel('Workspaces').fill('no-uuid');
  await dialog.getByLabel('Per minute').fill('many');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await faultOf('Per minute').getByText('“many” is no whole number.').waitFor();
  await dialog.getByLabel('Per minute').fill('0');
  await dialog.getByLabel('Expires after').fill('soon');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await faultOf('Expires after').getByText('“soon” is no duration.').waitFor();
  await dialog.getByLabel('Expires after').fill('90d');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await dialog.getByText('Nothing was changed: see the marked fields.').waitFor();
  const texts = await dialog.locator('.fault').allTextContents();
  expect(texts.map((text) => text.replace(/ Allowed: .*/s, ''))).toEqual([
    expect.stringMatching(/^(?:Missing\.|"" is not possible\.)$/),
    '"no-uuid" is not possible.',
    'an array of 0 is not possible.',
    '0 is not possible.',
  ]);
  expect(await dialog.locator('.failure').textContent()).not.toMatch(/workspaceIds|perMinute/);
  expect(await dialog.getByLabel('Name').evaluate((input) => input === document.activeElement)).toBe(true);
});
