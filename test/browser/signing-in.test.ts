import { afterAll, expect, test } from 'vitest';
import { closeBrowser, filled, openDashboard, startIdle } from './rig.ts';

afterAll(closeBrowser);

test('where tokens are set the page asks for one, says why it comes back, and forgets it with the tab', async () => {
  const gateway = await startIdle({ ADMIN_TOKEN: 'night=correct-horse' });
  const page = await openDashboard(gateway, { tolerated: /401 \(Unauthorized\)/ });
  const form = page.getByRole('dialog', { name: 'Sign in' });
  await form.getByLabel('Admin token').fill('wrong');
  await form.getByRole('button', { name: 'Sign in' }).click();
  await form.getByText('The gateway does not take this token.').waitFor();
  await form.getByLabel('Admin token').fill('correct-horse');
  await form.getByRole('button', { name: 'Sign in' }).click();
  await filled(page);
  expect(await page.getByRole('dialog').count()).toBe(0);
  const stored = await page.evaluate(() => [localStorage.length, sessionStorage.length]);
  expect(stored).toEqual([0, 1]);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  await gateway.close();
});
