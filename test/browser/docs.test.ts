/** The reference at `/docs`, as people on phones and at desks see it. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { launchChromium } from './chromium.ts';

let gateway: TestGateway;
let browser: Browser;
beforeAll(async () => {
  [gateway, browser] = await Promise.all([startTestGateway(), launchChromium()]);
});
afterAll(async () => {
  await browser.close();
  await gateway.close();
});

async function openDocs(width: number): Promise<{ readonly page: Page; readonly complaints: readonly string[] }> {
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  // The way that `/` leads.
  await page.goto(gateway.publicUrl);
  await page.locator('.opblock').first().waitFor();
  return { page, complaints };
}

/** The widths of the page and of the narrowest of the texts that were squeezed before. In pixels. */
function widths(page: Page) {
  const texts = { descriptions: '.opblock-tag small', headers: '.opblock .headers td:nth-child(2)' };
  return page.evaluate((selectors) => {
    const [descriptions, headers] = [selectors.descriptions, selectors.headers].map((selector) =>
      Math.min(...[...document.querySelectorAll(selector)].map((element) => element.getBoundingClientRect().width)),
    );
    return { page: document.documentElement.scrollWidth, descriptions, headers };
  }, texts);
}

test('at any width nothing scrolls sideways, and no text is squeezed', async () => {
  const { page, complaints } = await openDocs(320);
  expect((await widths(page)).page).toBe(320);
  const operation = page.locator('.opblock', { hasText: 'List reports' });
  await operation.getByRole('button', { name: 'List reports' }).click();
  await operation.locator('.headers-wrapper').first().waitFor();
  for (const width of [320, 390, 768, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    const found = await widths(page);
    expect([width, found.page]).toEqual([width, width]);
    expect(found.descriptions).toBeGreaterThan(200);
    expect(found.headers).toBeGreaterThan(100);
  }
  await page.close();
  expect(complaints).toEqual([]);
});

test('an operation that was executed fits too, and one key is given once', async () => {
  const { page } = await openDocs(390);
  const key = await gateway.issueKey();
  await page.getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.dialog-ux');
  const field = dialog.locator('input[type="text"]');
  expect(await field.count()).toBe(1);
  await field.fill(key);
  await dialog.getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.getByRole('button', { name: 'Close' }).click();
  for (const name of ['List reports', 'List calls']) {
    const operation = page.locator('.opblock', { hasText: name }).first();
    await operation.locator('.opblock-summary-control').click();
    // A call of v1 needs the workspace.
    if (name === 'List reports') await operation.locator('[data-param-name="workspaceId"] input').fill(WORKSPACE_A);
    await operation.getByRole('button', { name: 'Execute' }).click();
    await operation.locator('.live-responses-table .response').first().waitFor();
    expect(await operation.locator('.live-responses-table .response-col_status').last().innerText()).toMatch(/^200/);
    for (const width of [320, 390, 768]) {
      await page.setViewportSize({ width, height: 844 });
      expect([name, width, (await widths(page)).page]).toEqual([name, width, width]);
    }
  }
  await page.close();
});

test('it shows its own address, its rules as sentences, and one badge', async () => {
  const { page, complaints } = await openDocs(1280);
  const introduction = await page.locator('.info').innerText();
  expect(introduction).toContain(`${gateway.publicUrl}/v2/calls?pageSize=2`);
  expect(introduction).not.toContain('gateway.example');
  expect(await page.locator('.info .version').filter({ visible: true }).allInnerTexts()).toEqual([' 1.0.0 ']);
  const operation = page.locator('.opblock', { hasText: 'List calls' });
  await operation.getByRole('button', { name: 'List calls' }).click();
  const parameters = await operation.locator('.parameters-container').innerText();
  expect(parameters).toContain('Must be an integer from 1 to 999999999, given once; otherwise 400.');
  expect(parameters).toContain('Must be an integer from 1 to 100, given once; otherwise 400.');
  expect(parameters).not.toMatch(/minimum|maxLength|pattern/);
  await operation.getByRole('button', { name: 'Execute' }).click();
  const sent = await operation.locator('.request-url pre').innerText();
  expect(sent).toBe(`${gateway.publicUrl}/v2/calls?page=1&pageSize=50`);
  await page.close();
  // It has no key.
  expect(complaints).toEqual([expect.stringContaining('401')]);
});
