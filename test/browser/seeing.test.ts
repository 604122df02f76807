import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { TestGateway } from '../support/gateway.ts';
import { isFaint, textsOf } from './contrast.ts';
import { closeBrowser, filled, openDashboard, startBusy, startIdle } from './rig.ts';

let busy: TestGateway;
beforeAll(async () => {
  busy = (await startBusy()).gateway;
});
afterAll(async () => {
  await closeBrowser();
  await busy.close();
});

const SECTIONS = [
  'Now',
  'Last hour by class',
  'What if',
  'Times in force',
  'Why reads miss',
  'Top by store load',
  'Maintenance',
  'Purge',
  'Explain a path',
  'Keys',
  'Audit',
  'Fleet',
];

describe('the page', () => {
  test('shows every section, filled, and says in a word that all is well', async () => {
    const page = await openDashboard(busy);
    await filled(page);
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).toEqual([
      ...SECTIONS,
      'Endpoints of this listener',
    ]);
    await page.getByText('Ready', { exact: true }).waitFor();
    expect(await page.locator('.trouble:visible').count()).toBe(0);
    const hits = page.locator('.tile', { hasText: 'Hit ratio' }).locator('.tile-value');
    await expect.poll(() => hits.textContent()).toMatch(/^\d+(\.\d+)?\s%$/);
    expect(await page.locator('.panel-hour canvas').count()).toBe(2);
    expect(await page.locator('.panel-fleet tbody tr').count()).toBe(1);
    expect(await page.locator('.panel-top tbody').first().locator('tr').count()).toBe(10);
  });

  test('gives every control a name, for who works it by ear', async () => {
    const page = await openDashboard(busy);
    await filled(page);
    await page.getByRole('button', { name: 'Create a key …' }).click();
    const controls = 'button|textbox|slider|radio|checkbox|combobox|link|spinbutton|switch|option';
    const outline = await page.locator('body').ariaSnapshot();
    const named = outline.split('\n').filter((line) => new RegExp(`^\\s*- (?:${controls})\\b`).test(line));
    expect(named.length).toBeGreaterThan(60);
    expect(named.filter((line) => !new RegExp(`- (?:${controls}) "`).test(line))).toEqual([]);
    const landmarks = await page.evaluate(() =>
      ['header', 'nav', 'main', 'h1'].map((name) => document.querySelectorAll(name).length),
    );
    expect(landmarks).toEqual([1, 1, 1, 1]);
  });

  test('nothing reaches over the edge, from 360 to 1600 px wide', async () => {
    const page = await openDashboard(busy, { viewport: { width: 360, height: 800 } });
    await filled(page);
    for (const width of [360, 768, 1100, 1600]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    }
  });

  test('texts have the contrast that WCAG AA asks for, in both themes', async () => {
    const page = await openDashboard(busy);
    await filled(page);
    for (const theme of ['light', 'dark']) {
      await page.evaluate((name) => (document.documentElement.dataset['theme'] = name), theme);
      const texts = await textsOf(page);
      expect(texts.length).toBeGreaterThan(40);
      expect(texts.filter(isFaint)).toEqual([]);
    }
  });

  test('the theme that is chosen is kept', async () => {
    const page = await openDashboard(busy, { colorScheme: 'light' });
    const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.getByRole('button', { name: 'Theme: as the system' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    const dark = await ground();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
    expect(await ground()).toBe(dark);
  });

  test('a gateway that has not read anything says so in each section, and nothing is broken', async () => {
    const gateway = await startIdle();
    onTestFinished(() => gateway.close());
    const page = await openDashboard(gateway);
    await filled(page);
    await page.getByText('No predictions for list yet.').waitFor();
    await page.getByText('Nothing was changed yet.').waitFor();
    expect(await page.locator('.trouble:visible').count()).toBe(0);
    expect(await page.locator('body').textContent()).not.toMatch(/NaN|undefined|Infinity|\[object/);
  });

  test('a gateway that has gone is told at the top and where its data stood, with a way to try again', async () => {
    const gateway = await startIdle();
    const page = await openDashboard(gateway, { tolerated: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET/ });
    await filled(page);
    await gateway.close();
    await page.getByText('No answer', { exact: true }).waitFor();
    const fleet = page.getByRole('region', { name: 'Fleet' });
    await fleet.getByText('can’t be reached').waitFor();
    await fleet.getByRole('button', { name: 'Try again' }).waitFor();
    await expect.poll(() => page.locator('.panel-now .stale').textContent(), { timeout: 12_000 }).toMatch(/^stale: /);
  });
});
