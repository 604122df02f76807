import { afterAll, beforeEach, afterEach, describe, expect, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { z } from 'zod';
import type { TestGateway } from '../support/gateway.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { closeBrowser, filled, openDashboard, startBusy } from './rig.ts';

let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  ({ gateway, key } = await startBusy());
});
afterEach(() => gateway.close());
afterAll(closeBrowser);

const timesSchema = z.object({ classes: z.array(z.object({ class: z.string(), fresh: z.string() })) });

async function freshOf(cacheClass: string): Promise<string | undefined> {
  const { classes } = timesSchema.parse((await gateway.admin('GET', '/api/cache/ttl')).json);
  return classes.find((one) => one.class === cacheClass)?.fresh;
}

/** What the cache says of a read of a call: what the public API's Cache-Status holds. */
async function cacheStatus(id: string): Promise<string> {
  const reply = await gateway.get(`/v2/calls/${id}`, { key });
  return String(reply.headers['cache-status']);
}

function region(page: Page, name: string): Locator {
  return page.getByRole('region', { name, exact: true });
}

describe('the what-if section', () => {
  test('the slider moves by keyboard, and the predicted numbers with it', async () => {
    const page = await openDashboard(gateway);
    await filled(page);
    const whatIf = region(page, 'What if');
    const slider = whatIf.getByRole('slider', { name: 'Fresh time' });
    const predicted = async (): Promise<readonly string[]> =>
      whatIf.locator('.comparison tbody .strong').allTextContents();
    await expect.poll(() => whatIf.getByRole('textbox', { name: 'Fresh for' }).inputValue()).toBe('5m');
    const atPresent = await predicted();
    expect(await whatIf.locator('.comparison .difference').allTextContents()).toContain('the same');
    await slider.focus();
    await slider.press('Home');
    expect(await whatIf.getByRole('textbox', { name: 'Fresh for' }).inputValue()).toBe('500ms');
    const shortest = await predicted();
    expect(shortest).not.toEqual(atPresent);
    expect(await slider.getAttribute('aria-valuetext')).toContain('500\u00a0ms: hit ratio');
    await slider.press('ArrowRight');
    expect(await predicted()).not.toEqual(atPresent);
    expect(await whatIf.locator('.comparison tbody tr', { hasText: 'Store calls' }).textContent()).toMatch(
      /\/s.*\/s\+\d+\s%$/,
    );
  });

  test('a time that is typed is interpolated, applied, in force at once, and reset', async () => {
    const page = await openDashboard(gateway);
    await filled(page);
    const whatIf = region(page, 'What if');
    await whatIf.getByRole('textbox', { name: 'Fresh for' }).fill('7m');
    await whatIf.getByText('Interpolated between').waitFor();
    await whatIf.getByRole('button', { name: 'Apply 7m …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Set the fresh time of evaluation?' });
    await dialog.getByText('Predicted: hit ratio').waitFor();
    await dialog.getByRole('button', { name: 'Set to 7m' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await freshOf('evaluation')).toBe('7m');
    // A copy that was filled just now has 7 minutes left, but for the jitter of a tenth at most.
    await gateway.admin('POST', '/api/cache/purge', { tags: ['evaluation:ev_2'] });
    await cacheStatus('ev_2');
    const [, ttl = ''] = /^evalgate; hit; ttl=(\d+)$/.exec(await cacheStatus('ev_2')) ?? [];
    expect(Number(ttl)).toBeGreaterThan(377);
    expect(Number(ttl)).toBeLessThanOrEqual(420);
    const row = region(page, 'Times in force').locator('tr', { hasText: 'evaluation' });
    await row.getByText('set here').waitFor();
    await region(page, 'Audit').getByText('fresh 5m → 7m').waitFor();

    await whatIf.getByRole('button', { name: 'Reset to configuration …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await freshOf('evaluation')).toBe('5m');
    await expect.poll(() => row.getByText('set here').count()).toBe(0);
  });
});

describe('purging', () => {
  test('one evaluation: first dry, then for real, and its next read misses', async () => {
    const page = await openDashboard(gateway);
    const purge = region(page, 'Purge');
    const real = purge.getByRole('button', { name: /^Purge/ });
    expect(await cacheStatus('ev_3')).toMatch(/^evalgate; hit/);
    expect(await real.getAttribute('aria-disabled')).toBe('true');
    await purge.getByRole('textbox', { name: 'Id' }).fill('ev_3');
    await purge.getByRole('radio', { name: /Hard/ }).check();
    await purge.getByRole('button', { name: 'Dry run' }).click();
    await purge.getByText('Would purge 1 entry').waitFor();
    expect(await cacheStatus('ev_3')).toMatch(/^evalgate; hit/);
    // Another choice than what was shown can't be purged.
    await purge.getByRole('radio', { name: /Soft/ }).check();
    expect(await real.getAttribute('aria-disabled')).toBe('true');
    await purge.getByRole('radio', { name: /Hard/ }).check();
    await purge.getByRole('button', { name: 'Dry run' }).click();
    await purge.getByRole('button', { name: 'Purge 1 entry …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Purge' }).click();
    await purge.getByText('Purged 1 entry').waitFor();
    expect(await cacheStatus('ev_3')).toBe('evalgate; fwd=uri-miss; stored');
  });

  test('a whole class wants its name typed first', async () => {
    const page = await openDashboard(gateway);
    const purge = region(page, 'Purge');
    await purge.getByRole('combobox', { name: 'What' }).selectOption('class');
    await purge.getByRole('combobox', { name: 'Class' }).selectOption('evaluation');
    await purge.getByRole('button', { name: 'Dry run' }).click();
    await purge.getByRole('button', { name: 'Purge 12 entries …' }).click();
    const dialog = page.getByRole('dialog');
    const yes = dialog.getByRole('button', { name: 'Purge softly' });
    expect(await yes.getAttribute('aria-disabled')).toBe('true');
    await dialog.getByRole('textbox', { name: 'Type evaluation to go on' }).fill('evaluation');
    await yes.click();
    await purge.getByText('Purged 12 entries').waitFor();
  });
});

describe('maintenance', () => {
  test('is begun, told at the top, and ended', async () => {
    const page = await openDashboard(gateway);
    await filled(page);
    const section = region(page, 'Maintenance');
    await section.getByRole('button', { name: 'For 15m' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Begin 15m' }).click();
    await page.locator('.banner').getByText('the store is asked nothing').waitFor();
    await section.getByText(/^On: 1[45]\smin/).waitFor();
    const asked = gateway.store.calls('evaluation');
    const refused = await gateway.get('/v2/calls/ev_never_read', { key });
    expect([refused.status, gateway.store.calls('evaluation')]).toEqual([500, asked]);
    await section.getByText('copies are served as long as they are usable on error').waitFor();
    await page.locator('.banner').getByText('Copies are served as long as they are usable on error;').waitFor();
    await section.getByRole('button', { name: 'For 1h' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End in 1h' }).click();
    await region(page, 'Audit').getByText('moved the end of maintenance of').waitFor();
    await section.getByRole('button', { name: 'End now' }).click();
    await section.getByText('Off: the store is asked as usual.').waitFor();
    await expect.poll(() => page.locator('.banner').isVisible()).toBe(false);
    expect((await gateway.get('/v2/calls/ev_never_read', { key })).status).toBe(404);
  });
});

describe('keys', () => {
  test('one is created, works, and its secret is not on the page any more; then it is revoked', async () => {
    const page = await openDashboard(gateway);
    await filled(page);
    const keys = region(page, 'Keys');
    await keys.getByRole('button', { name: 'Create a key …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill('Night shift');
    await dialog.getByRole('button', { name: WORKSPACE_A }).click();
    await dialog.getByRole('textbox', { name: 'Per minute' }).fill('7');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const secret = (await dialog.locator('.secret').first().textContent()) ?? '';
    expect(secret).toMatch(/^evg_[A-Za-z0-9]{38}$/);
    await dialog.getByText('curl -H').waitFor();
    const answer = await gateway.get('/v2/calls/ev_1', { key: secret });
    expect([answer.status, answer.headers['x-ratelimit-limit-minute'] ?? '7']).toEqual([200, '7']);
    await dialog.getByRole('button', { name: 'I have kept it' }).click();
    const row = keys.locator('tr', { hasText: 'Night shift' });
    await row.getByText('7/min').waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(
      await page.evaluate(() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])),
    ).not.toContain(secret);
    await row.getByRole('button', { name: 'Revoke Night shift' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke for good' }).click();
    await row.getByText('revoked').waitFor();
    expect((await gateway.get('/v2/calls/ev_1', { key: secret })).status).toBe(403);
  });
});

describe('explaining', () => {
  test('a path tells what its next read would do', async () => {
    const page = await openDashboard(gateway, { tolerated: /400 \(Bad Request\)/ });
    const section = region(page, 'Explain a path');
    await cacheStatus('ev_1');
    await section.getByRole('textbox').fill('/v2/calls/ev_1');
    await section.getByRole('combobox', { name: 'As the key' }).selectOption({ label: 'test' });
    await section.getByRole('button', { name: 'Explain' }).click();
    await expect.poll(() => section.locator('.next').textContent()).toBe('The next read is served from memory.');
    await section.getByRole('textbox').fill('v2/calls');
    await section.getByRole('button', { name: 'Explain' }).click();
    await section.getByText('A path begins with a slash, such as /v2/calls?page=2.').waitFor();
    await section.getByRole('textbox').fill('/v2/calls');
    await section.getByRole('combobox', { name: 'As the key' }).selectOption({ label: 'nobody in particular' });
    await section.getByRole('button', { name: 'Explain' }).click();
    await section.getByText('depends on who asks. Choose a key in “As the key”.').waitFor();
    await section.getByRole('textbox').fill('/v3/nothing');
    await section.getByRole('button', { name: 'Explain' }).click();
    await section.getByText('puts no question to the cache').waitFor();
  });
});
