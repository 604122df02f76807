import { afterAll, expect, onTestFinished, test } from 'vitest';
import { closeBrowser, filled, openDashboard, startIdle } from './rig.ts';

afterAll(closeBrowser);

test('a gateway with tokens is asked for one; the page says why it asks again and who is signed in, and forgets', async () => {
  const gateway = await startIdle({ ADMIN_TOKEN: 'night=correct-horse' });
  onTestFinished(() => gateway.close());
  const page = await openDashboard(gateway, 'keys', { tolerated: /401 \(Unauthorized\)/ });
  const form = page.getByRole('region', { name: 'Sign in' });
  await form.getByLabel('Admin token').fill('wrong');
  await form.getByRole('button', { name: 'Sign in' }).click();
  await form.getByText('The gateway does not accept this token.').waitFor();
  expect(await page.locator('.panel').count()).toBe(1);
  await form.getByLabel('Admin token').fill('correct-horse');
  await form.getByLabel('Admin token').press('Enter');
  await filled(page);
  await page.getByText('Signed in as night').waitFor();
  expect(await form.count()).toBe(0);
  expect(await page.evaluate(() => [localStorage.length, sessionStorage.length])).toEqual([0, 1]);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await form.waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

test('without tokens nobody has to sign in, and the page says so', async () => {
  const gateway = await startIdle();
  onTestFinished(() => gateway.close());
  const page = await openDashboard(gateway, 'health');
  await page.getByText('Not signed in').waitFor();
  expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
});
