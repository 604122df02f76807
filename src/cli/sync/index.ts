/** `evalgate sync`: a copy of all calls that a key sees, kept up to date. A command for consumers of the API. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { z } from 'zod';
import { reasonOf } from '../../config/errors.ts';
import { formatDuration } from '../../time/duration.ts';
import { CliError, print, wrongCall } from '../command.ts';
import { countText } from '../format.ts';
import { write } from '../output.ts';
import { ConsumerApi } from './consumer-api.ts';
import { LocalCopy } from './copy.ts';
import { workIn } from './folder.ts';
import type { SyncOptions } from './options.ts';
import { type Counts, type Progress, Sync } from './sync.ts';

/** How often the feed is asked for what is new. */
const FEED_EVERY_MS = 2000;
const PROGRESS_EVERY_MS = 5000;

const keySchema = z.object({ key: z.object({ scopes: z.array(z.string()) }) });

/** Prints what it has done, when the copy is up to date with --once, else at SIGINT or SIGTERM. */
export async function keepCopy(command: Command, folder: string, options: SyncOptions): Promise<void> {
  const counts = await followCalls(folder, options);
  print(command, counts, `${options.once === true ? 'Up to date' : 'Stopped'}: ${countsText(counts)}.`);
}

async function followCalls(folder: string, options: SyncOptions): Promise<Counts> {
  const { url, keyFile } = options;
  const key = readKey(keyFile);
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
  const report = createReport();
  const api = new ConsumerApi({ url, key, signal: stopping.signal, onWait: report.wait });
  await checkKey(api);
  return await workIn(folder, async () => {
    const copy = await LocalCopy.open(folder, url, options.parts);
    const sync = new Sync({ api, copy, onProgress: (progress) => report.progress(progress, api) });
    return await follow(sync, options, { report, signal: stopping.signal }).finally(() => copy.close());
  });
}

/** Resolves once the copy is up to date with `once`, else when the signal is aborted. */
async function follow(
  sync: Sync,
  { once = false, every }: SyncOptions,
  { report, signal }: { readonly report: Pick<ReturnType<typeof createReport>, 'idle'>; readonly signal: AbortSignal },
): Promise<Counts> {
  try {
    for (let walkedAtMs = Date.now(); ;) {
      const beganMs = Date.now();
      const hasFeed = await sync.run();
      if (once) return sync.counts;
      // Changes without a word are only found by reading all calls.
      const isWalkDue = hasFeed && sync.isUnannounced && Date.now() - walkedAtMs >= every;
      if (isWalkDue) await sync.walk();
      if (isWalkDue || !hasFeed) walkedAtMs = Date.now();
      report.idle(sync.counts);
      // However long it took to read what has changed, the feed is asked as often.
      const pauseMs = hasFeed ? FEED_EVERY_MS - (Date.now() - beganMs) : every;
      await sleep(Math.max(0, pauseMs), null, { signal });
    }
  } catch (error) {
    if (signal.aborted) return sync.counts;
    throw error;
  }
}

/** Rejects with a CliError if the key cannot do it; that costs none of its quota. */
async function checkKey(api: ConsumerApi): Promise<void> {
  const reply = await api.get('/v2/key');
  const parsed = keySchema.safeParse(reply.kind === 'found' ? reply.body : null);
  if (!parsed.success) throw new CliError('GET /v2/key brings no key. Is --url the address of an evalgate gateway?');
  if (parsed.data.key.scopes.includes('calls.read')) return;
  throw new CliError(`The key has the scopes ${parsed.data.key.scopes.join(', ')}, and sync needs calls.read.`);
}

function readKey(file: string | undefined): string {
  const given = process.env['EVALGATE_API_KEY'];
  if (file === undefined && (given ?? '') !== '') return (given ?? '').trim();
  if (file === undefined) throw wrongCall('Set EVALGATE_API_KEY, or give a file that holds the key with --key-file.');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CliError(`${file}: ${reasonOf(error)}. Give a file that holds the API key.`);
  }
}

const say = (text: string): void => write('stderr', `${text}\n`);

/** Lines on standard error: progress every few seconds, and each wait with its reason. */
function createReport() {
  let lastAtMs = 0;
  let lastIdle = '';
  const sinceMs = Date.now();
  let requests = 0;
  return {
    wait: (reason: string, delayMs: number): void => {
      if (delayMs >= 1000) say(`Waiting ${formatDuration(Math.round(delayMs / 1000) * 1000)}: ${reason}`);
    },
    progress: ({ phase, done, total, requestsLeft }: Progress, { limits }: ConsumerApi): void => {
      requests += 1;
      const nowMs = Date.now();
      if (nowMs - lastAtMs < PROGRESS_EVERY_MS) return;
      lastAtMs = nowMs;
      const measured = (requests * 1000) / Math.max(1, nowMs - sinceMs);
      say(`${phase}: ${done} of ${total}${leftText(requestsLeft, measured, limits)}`);
    },
    idle: (counts: Counts): void => {
      const text = countsText(counts);
      if (text !== lastIdle) say(`Up to date: ${text}.`);
      lastIdle = text;
    },
  };
}

/** How long so many requests take: at the speed so far, and within the key's limits. */
function leftText(requests: number, perSecond: number, limits: ConsumerApi['limits']): string {
  if (requests === 0) return '';
  const { perMinute = Infinity, perHour = Infinity, leftInHour = Infinity } = limits ?? {};
  // Each further hour brings as many requests as an hour may have.
  const hours = Math.max(0, Math.ceil((requests - leftInHour) / perHour));
  const inLastHour = requests - (hours === 0 ? 0 : leftInHour + (hours - 1) * perHour);
  const seconds = [requests / perSecond, hours * 3600 + (inLastHour / perMinute) * 60];
  const limit = limits === null ? '' : ` at ${perMinute} a minute and ${perHour} an hour`;
  const minutes = Math.ceil(Math.max(...seconds) / 60);
  const time = minutes <= 1 ? 'a minute at most' : `about ${formatDuration(minutes * 60_000)}`;
  return `; ${countText(requests, 'request')} still to make, ${time}${limit}`;
}

function countsText({ written, deleted, parts, unreadable }: Counts): string {
  const owed =
    unreadable === 0 ? '' : `, ${countText(unreadable, 'record')} to be asked for again: the store could not give them`;
  return `${countText(written, 'call')} written, ${deleted} deleted, ${countText(parts, 'part')} read${owed}`;
}
