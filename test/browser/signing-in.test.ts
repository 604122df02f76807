import { afterAll, expect, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { closeBrowser, filled, goTo, openDashboard, startIdle } from './rig.ts';

afterAll(closeBrowser);

test('a gateway with tokens is asked for one; the page says why it asks again and who is signed in, and forgets', async () => {
  const gateway = await forTest(startIdle({ ADMIN_TOKEN: 'night=correct-horse' }));
  const page = await openDashboard(gateway, 'keys', { tolerated: /401 \(Unauthorized\)/ });
  const form = page.getByRole('region', { name: 'Sign in' });
  await form.getByLabel('Admin token').fill('wrong');
  await form.getByRole('button', { name: 'Sign in' }).click();
  await form.getByText('The gateway does not accept this token.').waitFor();
  expect(await page.locator('.panel').count()).toBe(1);
  await form.getByLabel('Admin token').fill('correct-horse');
  await form.getByLabel('Admin token').press('Enter');
  await filled(page);
  await page.getByText('Signed in as night (admin)').waitFor();
  expect(await form.count()).toBe(0);
  expect(await page.evaluate(() => [localStorage.length, sessionStorage.length])).toEqual([0, 1]);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await form.waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

test('without tokens nobody has to sign in, and the page says so', async () => {
  const gateway = await forTest(startIdle());
  const page = await openDashboard(gateway, 'health');
  await page.getByText('Not signed in').waitFor();
  expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
});

test.each([
  ['viewer', ['Health', 'Cache', 'Keys'], []],
  ['operator', ['Health', 'Cache', 'Keys'], ['purge', 'Change TTLs of list', 'Begin …']],
  ['keys', ['Keys'], ['Create a key …']],
])('the page of the role %s has what it may see and do, and asks for nothing else', async (role, views, changes) => {
  const gateway = await forTest(startIdle({ ADMIN_TOKEN: `night:${role}=correct-horse` }));
  const page = await openDashboard(gateway, 'health', { tolerated: /401 \(Unauthorized\)/ });
  await page.getByLabel('Admin token').fill('correct-horse');
  await page.getByLabel('Admin token').press('Enter');
  await page.getByText(`Signed in as night (${role})`).waitFor();
  const links = page.getByRole('navigation').getByRole('link');
  expect(await links.allTextContents()).toEqual(views);
  const found: string[] = [];
  for (const view of ['Health', 'Cache', 'Keys'] as const) {
    if (!views.includes(view)) continue;
    await goTo(page, view);
    if ((await page.locator('#purge').count()) > 0) found.push('purge');
    for (const name of ['Change TTLs of list', 'Begin …', 'Create a key …']) {
      if ((await page.getByRole('button', { name }).count()) > 0) found.push(name);
    }
  }
  expect(found).toEqual(changes);
  expect(gateway.logLines.filter((line) => line.includes('not allowed for the role'))).toEqual([]);
});
