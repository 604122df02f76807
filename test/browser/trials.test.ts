import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { z } from 'zod';
import type { TestGateway } from '../support/gateway.ts';
import { CONTROL_ARM, TRIAL_ARM } from '../support/trial-arms.ts';
import { closeBrowser, filled, openDashboard, startBusy, startIdle } from './rig.ts';

let gateway: TestGateway;
afterAll(closeBrowser);

function region(page: Page, name: string): Locator {
  return page.getByRole('region', { name, exact: true });
}

const spaced = (text: string | null): string => (text ?? '').replaceAll('\u00a0', ' ');

async function texts(found: Locator): Promise<readonly string[]> {
  return (await found.allTextContents()).map(spaced);
}

const from = (ms: number): string => new Date(Date.now() + ms).toISOString();
const RUNNING = {
  id: 't1',
  class: 'list',
  state: 'running',
  reason: null,
  fresh: '1m',
  freshMs: 60_000,
  share: 0.1,
  startedAt: from(-600_000),
  startedBy: 'alice',
  until: from(3_000_000),
  endedAt: null,
  limits: { maxStoreLoad: 1.5, maxErrors: 0.05 },
  arms: { trial: TRIAL_ARM, control: CONTROL_ARM },
  predicted: { trial: { hitRatio: 0.941, storeCallsPerRead: 0.059 }, control: null },
};
const WHY = "The trial's keys asked the store 2.10 times as often <b>per read</b>; the limit is 1.5 times.";
const BACK = { ...RUNNING, state: 'rolled-back', reason: WHY, endedAt: from(-1000) };

/** The page of a gateway that has these trials, whatever they become meanwhile. */
async function opened(answer: { trials: readonly object[] }): Promise<Page> {
  const page = await openDashboard(gateway);
  await page.route('**/api/cache/trials', (route) => route.fulfill({ json: answer }));
  await filled(page);
  return page;
}

describe('seeing', () => {
  beforeAll(async () => {
    gateway = await startIdle();
  });
  afterAll(() => gateway.close());

  test('of one that runs: both arms beside what was predicted, and how much is left', async () => {
    const page = await opened({ trials: [RUNNING] });
    const card = page.getByRole('article', { name: 'list: fresh 1m for 10 % of the keys' });
    await card.waitFor();
    expect(spaced(await card.locator('.trial-left').textContent())).toMatch(
      /^(?:50|49) min left, until (?:\d\d:\d\d:\d\d|\d+ \w{3}, \d\d:\d\d) · started by alice$/,
    );
    const rows = await card.getByRole('row').all();
    expect(await Promise.all(rows.map((row) => texts(row.locator('th, td'))))).toEqual([
      ['', 'trial, 1m', 'predicted', 'the rest, 30s', 'predicted'],
      ['Reads', '1,234', '', '11,234', ''],
      ['Hit ratio', '93.8 %', '94.1 %', '88.0 %', '–'],
      ['Store calls per read', '0.062', '0.059', '0.120', '–'],
      ['Failed store calls', '0 % of 77', '', '0.22 % of 1,348', ''],
    ]);
    expect(spaced(await card.locator('.hint').textContent())).toBe(
      'A read costs the store 0.52 times what one of the rest does; clearly above 1.5 times the trial goes back by itself. Of its store calls 0.2 points fewer than of the rest fail; clearly above 5 points more it goes back by itself.',
    );
  });

  test('figures change under the keyboard’s focus without taking it away', async () => {
    const answer = { trials: [RUNNING] };
    const page = await opened(answer);
    const stop = page.getByRole('button', { name: 'Stop the trial of list' });
    await stop.focus();
    answer.trials = [{ ...RUNNING, arms: { trial: { ...TRIAL_ARM, reads: 1235 }, control: CONTROL_ARM } }];
    await page.getByRole('cell', { name: '1,235' }).waitFor();
    expect(await stop.evaluate((button) => button === document.activeElement)).toBe(true);
  });

  test('of one that is rolled back: why, as text, and it is said aloud', async () => {
    const answer = { trials: [RUNNING] as object[] };
    const page = await opened(answer);
    await page.getByRole('article').waitFor();
    answer.trials = [BACK];
    await expect
      .poll(() => page.locator('#announcements').textContent(), { timeout: 8000 })
      .toBe(`The trial of list was rolled back. ${WHY}`);
    const trials = region(page, 'Trials');
    expect(await trials.getByRole('article').count()).toBe(0);
    const row = trials.locator('tbody tr');
    expect(await texts(row.locator('th, td'))).toEqual([
      'list',
      '1m beside 30s',
      '10 %',
      expect.stringMatching(/^rolled back (?:\d+ \w+, )?\d\d:\d\d(?::\d\d)?$/),
      '93.8 % beside 88.0 %',
      '0.062 beside 0.120',
      WHY,
      '',
    ]);
    await trials.getByText('No trial runs.').waitFor();
  });

  test('only the last one of a class, where it ended by its time, may still be adopted', async () => {
    const ended = { ...RUNNING, state: 'ended', endedAt: from(-1000) };
    const page = await opened({
      trials: [
        RUNNING,
        { ...ended, id: 't2', class: 'rubric' },
        { ...ended, id: 't3', class: 'rubric' },
        { ...ended, id: 't4' },
        { ...ended, id: 't5', class: 'scorecard', state: 'stopped' },
        { ...ended, id: 't6', class: 'scorecard' },
        { ...ended, id: 't7', class: 'notFound' },
      ],
    });
    const trials = region(page, 'Trials');
    const all = trials.getByRole('button', { name: 'Show all 6 that are over' });
    await all.waitFor();
    expect(await trials.locator('.dense tbody tr').count()).toBe(5);
    await all.click();
    expect(await trials.locator('.dense tbody tr').count()).toBe(6);
    const adopts = await trials.getByRole('button', { name: /^Adopt/ }).all();
    expect(await Promise.all(adopts.map((button) => button.getAttribute('aria-label')))).toEqual([
      'Adopt 1m for list',
      'Adopt 1m for rubric',
      'Adopt 1m for notFound',
    ]);
  });
});

const trialsSchema = z.object({
  trials: z.array(
    z.object({ class: z.string(), state: z.string(), fresh: z.string(), share: z.number(), limits: z.unknown() }),
  ),
});

async function trialsOf(): Promise<z.output<typeof trialsSchema>['trials']> {
  return trialsSchema.parse((await gateway.admin('GET', '/api/cache/trials')).json).trials;
}

async function freshOf(cacheClass: string): Promise<string | undefined> {
  const { classes } = z
    .object({ classes: z.array(z.object({ class: z.string(), fresh: z.string() })) })
    .parse((await gateway.admin('GET', '/api/cache/ttl')).json);
  return classes.find((one) => one.class === cacheClass)?.fresh;
}

describe('changing', () => {
  beforeEach(async () => {
    ({ gateway } = await startBusy());
  });
  afterEach(() => gateway.close());

  test('a time that was chosen in What if is tried on some keys, and told in Times', async () => {
    const page = await openDashboard(gateway);
    await filled(page);
    await region(page, 'Trials').getByText('No trial runs. One is started from What if or Times.').waitFor();
    const whatIf = region(page, 'What if');
    const start = whatIf.getByRole('button', { name: 'Start a trial …' });
    expect(await start.getAttribute('aria-disabled')).toBe('true');
    await whatIf.getByRole('textbox', { name: 'Fresh for' }).fill('7m');
    await start.click();
    const dialog = page.getByRole('dialog', { name: 'Start a trial of evaluation?' });
    await dialog.getByText('Predicted: hit ratio').waitFor();
    expect(await dialog.getByRole('textbox', { name: 'Fresh for' }).inputValue()).toBe('7m');
    const share = dialog.getByRole('textbox', { name: 'Share of the keys' });
    await share.fill('60%');
    await share.press('Enter');
    await dialog
      .getByText('Share of the keys: “60%” is no share for this. Write 10% or 0.1; above 0 and at most 50 %.')
      .waitFor();
    await share.fill('25 %');
    await dialog.getByRole('textbox', { name: 'Ends after' }).fill('2h');
    await dialog.getByRole('textbox', { name: 'Failed store calls' }).fill('2%');
    await dialog.getByRole('button', { name: 'Start' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await trialsOf()).toEqual([
      {
        class: 'evaluation',
        state: 'running',
        fresh: '7m',
        share: 0.25,
        limits: { maxStoreLoad: 1.5, maxErrors: 0.02 },
      },
    ]);
    const card = page.getByRole('article', { name: 'evaluation: fresh 7m for 25 % of the keys' });
    await card.getByText('left, until').waitFor();
    const row = region(page, 'Times in force').locator('tr', { hasText: 'evaluation' });
    await row.getByRole('link', { name: 'trial: 7m for 25 %' }).waitFor();
    await region(page, 'Audit').getByText('started a trial of evaluation').waitFor();
  });

  test('a class has one at a time, which is stopped', async () => {
    const plan = { class: 'evaluation', fresh: '7m', share: 0.25, for: '2h' };
    expect((await gateway.admin('POST', '/api/cache/trials', plan)).status).toBe(201);
    const page = await openDashboard(gateway, { tolerated: /409 \(Conflict\)/ });
    await filled(page);
    const trials = region(page, 'Trials');
    const row = region(page, 'Times in force').locator('tr', { hasText: 'evaluation' });
    await row.getByRole('link').waitFor();
    await region(page, 'Times in force').getByRole('button', { name: 'Start a trial of evaluation' }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Fresh for' }).fill('8m');
    await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click();
    await page.getByRole('dialog').getByText('A trial of evaluation runs already').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();

    await trials.getByRole('button', { name: 'Stop the trial of evaluation' }).click();
    await page.getByRole('dialog').getByText('All keys are fresh for 5m again').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await trials.getByRole('cell', { name: 'Stopped by anonymous.' }).waitFor();
    expect(await trialsOf()).toMatchObject([{ class: 'evaluation', state: 'stopped' }]);
    await row.getByRole('link').waitFor({ state: 'detached' });
    await region(page, 'Audit').getByText('stopped the trial of evaluation').waitFor();
  });

  test('one that is begun in Times is adopted for all keys', async () => {
    const page = await openDashboard(gateway);
    await filled(page);
    await region(page, 'Times in force').getByRole('button', { name: 'Start a trial of rubric' }).click();
    const dialog = page.getByRole('dialog', { name: 'Start a trial of rubric?' });
    await dialog.getByRole('button', { name: 'Start' }).click();
    await dialog.getByText('Fresh for: that is what is in force. Give another time to try.').waitFor();
    await dialog.getByRole('textbox', { name: 'Fresh for' }).fill('20m');
    await dialog.getByRole('button', { name: 'Start' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Adopt 20m for rubric' }).click();
    const question = page.getByRole('dialog', { name: 'Adopt 20m for all keys of rubric?' });
    await question.getByText('Measured: hit ratio – → –, store calls per read – → –.').waitFor();
    await question.getByRole('button', { name: 'Adopt 20m' }).click();
    await question.waitFor({ state: 'detached' });
    expect([await freshOf('rubric'), await trialsOf()]).toMatchObject(['20m', [{ state: 'adopted', fresh: '20m' }]]);
    const trials = region(page, 'Trials');
    await trials.getByRole('cell', { name: 'Adopted by anonymous.' }).waitFor();
    expect(await trials.getByRole('button', { name: /^(?:Adopt|Stop)/ }).count()).toBe(0);
    await region(page, 'Audit').getByText('adopted the trial of rubric').waitFor();
  });
});
