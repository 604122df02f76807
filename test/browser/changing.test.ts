import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { z } from 'zod';
import type { TestGateway } from '../support/gateway.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { closeBrowser, filled, goTo, openDashboard, startBusy } from './rig.ts';

let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  ({ gateway, key } = await startBusy());
  // After the page, which calls it until it is closed: the last that was registered runs first.
  onTestFinished(() => gateway.close());
});
afterAll(closeBrowser);

const ttlSchema = z.object({ classes: z.array(z.object({ class: z.string(), fresh: z.string() })) });

async function freshOf(cacheClass: string): Promise<string | undefined> {
  const { classes } = ttlSchema.parse((await gateway.admin('GET', '/api/cache/ttl')).json);
  return classes.find((one) => one.class === cacheClass)?.fresh;
}

/** The Cache-Status of a read of a call. */
async function cacheStatus(id: string): Promise<string> {
  return String((await gateway.get(`/v2/calls/${id}`, { key })).headers['cache-status']);
}

function region(page: Page, name: string): Locator {
  return page.getByRole('region', { name, exact: true });
}

describe('what if', () => {
  test('the slider moves by keyboard, and the predicted numbers with it', async () => {
    const page = await openDashboard(gateway, 'cache');
    await filled(page);
    const whatIf = region(page, 'What if');
    const slider = whatIf.getByRole('slider', { name: 'Fresh TTL' });
    const fresh = whatIf.getByRole('textbox', { name: 'Fresh for' });
    const predicted = (): Promise<readonly string[]> => whatIf.locator('td strong').allTextContents();
    await expect.poll(() => fresh.inputValue()).toBe('5m');
    expect(await whatIf.locator('tbody').first().textContent()).toContain('the same');
    const inForce = await predicted();
    await slider.focus();
    await slider.press('Home');
    expect(await fresh.inputValue()).toBe('500ms');
    expect(await predicted()).not.toEqual(inForce);
    expect(await slider.getAttribute('aria-valuetext')).toContain('500\u00a0ms: Store calls per read');
    await slider.press('ArrowRight');
    expect(await fresh.inputValue()).not.toBe('500ms');
  });

  test('a second slider supposes another time for lists, which bring evaluations along', async () => {
    await gateway.get('/v2/calls', { key });
    const page = await openDashboard(gateway, 'cache');
    await filled(page);
    const whatIf = region(page, 'What if');
    const lists = whatIf.getByRole('slider', { name: 'TTL supposed for list' });
    await whatIf.getByText(', as in force.').waitFor();
    await lists.focus();
    await lists.press('Home');
    await whatIf.getByText(', if it were set.').waitFor();
    expect(await lists.getAttribute('aria-valuetext')).toContain('500\u00a0ms: Store calls per read');
    expect(await freshOf('list')).toBe('30s');
    await whatIf.getByRole('button', { name: 'As in force' }).click();
    await whatIf.getByText(', as in force.').waitFor();
  });

  test('a TTL that is typed is interpolated, set, in force at once, and reset', async () => {
    const page = await openDashboard(gateway, 'cache');
    await filled(page);
    const whatIf = region(page, 'What if');
    await whatIf.getByRole('textbox', { name: 'Fresh for' }).fill('7m');
    await whatIf.getByText('Interpolated between').waitFor();
    await whatIf.getByRole('button', { name: 'Set to 7m …' }).click();
    const dialog = page.getByRole('dialog', { name: 'TTLs of evaluation' });
    await dialog.getByText('Predicted: Store calls per read').waitFor();
    await dialog.getByRole('button', { name: 'Set' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await freshOf('evaluation')).toBe('7m');
    // A copy that was fetched just now has 7 minutes left, less the jitter of a tenth at most.
    await gateway.admin('POST', '/api/cache/purge', { tags: ['evaluation:ev_2'] });
    await cacheStatus('ev_2');
    const [, ttl = ''] = /^evalgate; hit; ttl=(\d+)$/.exec(await cacheStatus('ev_2')) ?? [];
    expect(Number(ttl)).toBeGreaterThan(377);
    expect(Number(ttl)).toBeLessThanOrEqual(420);
    const row = region(page, 'TTLs').locator('tbody tr', { hasText: 'evaluation' });
    await row.getByText('set', { exact: true }).waitFor();
    await row.getByRole('button', { name: 'Reset TTLs of evaluation' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await freshOf('evaluation')).toBe('5m');
    expect(await row.getByText('set', { exact: true }).count()).toBe(0);
    await goTo(page, 'Keys');
    await region(page, 'Audit').getByText('fresh 5m to 7m').waitFor();
  });
});

describe('TTLs', () => {
  test('are changed by keyboard only, and the focus returns', async () => {
    const page = await openDashboard(gateway, 'cache');
    await filled(page);
    const change = page.getByRole('button', { name: 'Change TTLs of list' });
    await page.locator('nav a', { hasText: 'Keys' }).focus();
    // Past Theme, to the first button of the table.
    for (let tabs = 0; tabs < 2; tabs += 1) await page.keyboard.press('Tab');
    await expect.poll(() => change.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'TTLs of list' });
    await dialog.getByRole('textbox', { name: 'fresh' }).waitFor();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('nonsense');
    await page.keyboard.press('Enter');
    await dialog.getByText('“nonsense” is no duration.').waitFor();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('45s');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(await freshOf('list')).toBe('45s');
    expect(await change.evaluate((element) => element === document.activeElement)).toBe(true);
  });

  test('an end is sent as `for`', async () => {
    const page = await openDashboard(gateway, 'cache', { tolerated: /400 \(Bad Request\)/ });
    await page.getByRole('button', { name: 'Change TTLs of list' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'fresh' }).fill('45s');
    await dialog.getByRole('textbox', { name: 'for', exact: true }).fill('1h');
    const sent = page.waitForRequest((request) => request.method() === 'PUT');
    await dialog.getByRole('button', { name: 'Set' }).click();
    expect((await sent).postDataJSON()).toEqual({ fresh: '45s', for: '1h' });
  });
});

describe('purging', () => {
  test('one evaluation: first dry, then for real, and its next read misses', async () => {
    const page = await openDashboard(gateway, 'cache');
    const purge = region(page, 'Purge');
    const real = purge.getByRole('button', { name: /^Purge/ });
    expect(await cacheStatus('ev_3')).toMatch(/^evalgate; hit/);
    expect(await real.getAttribute('aria-disabled')).toBe('true');
    await purge.getByRole('textbox', { name: 'Tags' }).fill('evaluation:ev_3');
    await purge.getByRole('combobox', { name: 'Mode' }).selectOption('hard');
    await purge.getByRole('button', { name: 'Dry run' }).click();
    await purge.getByText('Would purge 1 entry').waitFor();
    expect(await cacheStatus('ev_3')).toMatch(/^evalgate; hit/);
    // Something else than what was shown can't be purged.
    await purge.getByRole('combobox', { name: 'Mode' }).selectOption('soft');
    expect(await real.getAttribute('aria-disabled')).toBe('true');
    await purge.getByRole('combobox', { name: 'Mode' }).selectOption('hard');
    await purge.getByRole('button', { name: 'Purge 1 entry …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Purge' }).click();
    await purge.getByText('Purged 1 entry').waitFor();
    expect(await cacheStatus('ev_3')).toBe('evalgate; fwd=uri-miss; stored');
  });

  test('a class only after its name was typed', async () => {
    const page = await openDashboard(gateway, 'cache');
    const purge = region(page, 'Purge');
    await purge.getByRole('textbox', { name: 'Tags' }).fill('class:evaluation');
    await purge.getByRole('combobox', { name: 'Mode' }).selectOption('soft');
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

test('maintenance is begun, shown at the top of each view, moved, and ended', async () => {
  const page = await openDashboard(gateway, 'cache');
  await filled(page);
  const section = region(page, 'Maintenance');
  const banner = page.locator('.status', { hasText: /The store is not called.*Maintenance ends in/ });
  await section.getByRole('textbox', { name: 'For' }).fill('15m');
  await section.getByRole('button', { name: 'Begin …' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Begin' }).click();
  await section.getByText(/On: 1[45]\smin/).waitFor();
  await banner.waitFor();
  const calls = gateway.store.calls('evaluation');
  const refused = await gateway.get('/v2/calls/ev_never_read', { key });
  expect([refused.status, gateway.store.calls('evaluation')]).toEqual([500, calls]);
  await section.getByRole('textbox', { name: 'End in' }).fill('1h');
  await section.getByRole('button', { name: 'Move the end …' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Move the end' }).click();
  await section.getByText(/On: (1\sh|59\smin)/).waitFor();
  await section.getByRole('button', { name: 'End now' }).click();
  await section.getByText('Off: the store is called as usual.').waitFor();
  await expect.poll(() => banner.count()).toBe(0);
  expect((await gateway.get('/v2/calls/ev_never_read', { key })).status).toBe(404);
});

test('a key is created with what was chosen, used, edited, rotated and revoked; its secret does not stay', async () => {
  const page = await openDashboard(gateway, 'keys');
  await filled(page);
  const keys = region(page, 'Keys');
  const dialog = page.getByRole('dialog');
  await keys.getByRole('button', { name: 'Create a key …' }).click();
  expect(await dialog.getByRole('checkbox', { checked: true }).count()).toBe(0);
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Night shift');
  await dialog.getByRole('button', { name: `Add ${WORKSPACE_A}` }).click();
  await dialog.getByRole('checkbox', { name: /^calls\.read/ }).check();
  await dialog.getByRole('textbox', { name: 'Per minute' }).fill('7');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  const secret = await dialog.getByRole('textbox', { name: 'Key' }).inputValue();
  await expect.poll(() => page.evaluate(() => getSelection()?.toString())).toBe(secret);
  expect(secret).toMatch(/^evg_[A-Za-z0-9]{38}$/);
  expect((await gateway.get('/v2/calls/ev_1', { key: secret })).status).toBe(200);
  await dialog.getByRole('button', { name: 'I have kept it' }).click();
  const row = keys.locator('tbody tr', { hasText: 'Night shift' });
  await row.getByText('7/min').waitFor();
  await row.getByText('calls.read', { exact: true }).waitFor();
  const kept = await page.evaluate(() =>
    JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)]),
  );
  expect((await page.content()) + kept).not.toContain(secret);

  // The use is asked for every ten seconds, and by a page that is loaded.
  await page.reload();
  await expect.poll(() => row.locator('[data-label="Requests"]').textContent()).toBe('1');
  await row.getByRole('button', { name: 'Edit Night shift' }).click();
  await expect.poll(() => dialog.getByRole('checkbox', { checked: true }).count()).toBe(1);
  await dialog.getByRole('textbox', { name: 'Per minute' }).fill('');
  await dialog.getByRole('textbox', { name: 'Per hour' }).fill('90');
  await dialog.getByRole('textbox', { name: 'Addresses' }).fill('127.0.0.1, ::1/128');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row.getByText('90/h', { exact: true }).waitFor();
  await row.getByText('from 127.0.0.1/32, ::1/128', { exact: true }).waitFor();

  await row.getByRole('button', { name: 'Rotate Night shift' }).click();
  await dialog.getByRole('button', { name: 'Rotate' }).click();
  const next = await dialog.getByRole('textbox', { name: 'Key' }).inputValue();
  expect((await gateway.get('/v2/calls/ev_1', { key: next })).status).toBe(200);
  await dialog.getByRole('button', { name: 'I have kept it' }).click();
  await expect.poll(() => row.count()).toBe(2);

  const own = row.filter({ hasNotText: 'never' });
  await own.getByRole('button', { name: 'Revoke Night shift' }).click();
  await dialog.getByRole('button', { name: 'Revoke for good' }).click();
  await row.getByText('revoked').waitFor();
  const answers = [secret, next].map(async (token) => (await gateway.get('/v2/calls/ev_1', { key: token })).status);
  expect(new Set(await Promise.all(answers))).toEqual(new Set([200, 403]));
});

test('a path is explained as a key reads it', async () => {
  const page = await openDashboard(gateway, 'cache', { tolerated: /400 \(Bad Request\)/ });
  const section = region(page, 'Explain a path');
  await cacheStatus('ev_1');
  await section.getByRole('textbox').fill('/v2/calls/ev_1');
  await section.getByRole('combobox', { name: 'As the key' }).selectOption({ label: 'test' });
  await section.getByRole('button', { name: 'Explain' }).click();
  await section.getByText('The next read is served from memory.').waitFor();
  await section.getByRole('textbox').fill('/v2/calls');
  await section.getByRole('combobox', { name: 'As the key' }).selectOption({ label: 'no key' });
  await section.getByRole('button', { name: 'Explain' }).click();
  const refusal = section.getByRole('alert');
  await refusal.waitFor();
  expect(await refusal.textContent()).toContain('depends on who asks');
});
