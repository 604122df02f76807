/**
 * Erasing records that are read, in a fleet of four (one with two workers) under load: the proof holds, and is refused while a
 * process is stopped, vanished, or the store still has the record. PROVE_ERASURES makes it fewer.
 */
import { openSync, closeSync, readFileSync, readSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { Fleet } from '../support/fleet.ts';
import type { Target } from '../support/load.ts';
import type { GatewayProcess } from '../support/process.ts';
import { anEvaluation, aTranscript, WORKSPACE_A } from '../support/records.ts';
import { withClient } from '../support/redis/client.ts';
import { sendJson } from '../support/store-server.ts';
import { count, ms, percent, prove } from './bar.ts';

const ERASURES = Number(process.env['PROVE_ERASURES'] ?? 200);
const PER_SECOND = 300;
/** Begins each text; the process of the test is not looked through. */
const NEEDLE = 'erased-text-';
const STORE_MS = 20;
const NONE = JSON.stringify({ code: 'NOT_FOUND', message: 'there is none' });
/** How long traffic goes on before the processes are looked through. */
const SETTLE_MS = 10_000;

const receiptSchema = z.looseObject({
  erased: z.boolean(),
  refetched: z.boolean(),
  processes: z.array(z.object({ id: z.string(), reached: z.boolean() })),
});

function textOf(id: string): string {
  return `${NEEDLE}${id}: ${'words of somebody '.repeat(20)}`;
}

function pathsOf(id: string): readonly string[] {
  return [
    `/v2/calls/${id}`,
    `/v2/calls/${id}/transcript`,
    `/v1/workspaces/${WORKSPACE_A}/reports/${id}`,
    ...Array.from({ length: 20 }, (_, i) => `/v2/calls/other_${i}`),
    '/v2/calls?page={n}',
  ];
}

/** Whose records have a text of their own, until they are deleted. */
async function startWorld() {
  const times = { CACHE_EVALUATION_FRESH: '1h', CACHE_TRANSCRIPT_FRESH: '1h', CACHE_LIST_FRESH: '1h' };
  const fleet = await forTest(Fleet.start({ gateways: 3, redis: {}, env: times }));
  await fleet.add({ WORKERS: '2', LOG_LEVEL: 'info' });
  const deleted = new Set<string>();
  fleet.store.server.override(/\/evaluations\/victim_\d+(\/transcript)?$/, (request, response) => {
    const [, id = '', part] =
      /\/(victim_\d+)(\/transcript)?$/.exec(new URL(request.url ?? '', 'http://x').pathname) ?? [];
    const isDeleted = deleted.has(id);
    setTimeout(() => {
      if (isDeleted) response.writeHead(404).end(NONE);
      else if (part === undefined) sendJson(request, response, anEvaluation({ _id: id, title: textOf(id) }));
      else
        sendJson(request, response, aTranscript({ evaluationId: id, body: `Ann: ${textOf(id)}\nBob: ${textOf(id)}` }));
    }, STORE_MS);
  });
  const key = await fleet.first.issueKey();
  const load = await fleet.load();
  const targets = (id: string): readonly Target[] => fleet.targets(pathsOf(id), key);
  return { fleet, load, key, deleted, targets };
}

async function erase(gateway: GatewayProcess, id: string) {
  return receiptSchema.parse(await gateway.administer('POST', '/api/cache/erase', { evaluation: id }));
}

/** Which texts the writable memory of a process holds: `/proc/PID/mem` reads as a core image would. */
function textsIn(pid: number): ReadonlySet<string> {
  const found = new Set<string>();
  const file = openSync(`/proc/${pid}/mem`, 'r');
  const block = Buffer.alloc(4 * 1024 * 1024);
  const overlap = 64;
  for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
    const [, from = '', to = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    for (let at = Number.parseInt(from, 16); at < Number.parseInt(to, 16); at += block.length - overlap) {
      let bytes = 0;
      try {
        bytes = readSync(file, block, 0, Math.min(block.length, Number.parseInt(to, 16) - at), at);
      } catch {
        // The map was given back meanwhile.
        break;
      }
      for (const [text] of block.toString('latin1', 0, bytes).matchAll(/erased-text-victim_\d+:/g)) found.add(text);
    }
  }
  closeSync(file);
  return found;
}

/** How many values of Redis hold any of the texts. */
async function valuesWithText({ redis }: Fleet): Promise<number> {
  return await withClient(redis.url, async (client) => {
    let holding = 0;
    for (const name of await client.keys('*')) {
      const kind = await client.type(name);
      const values =
        kind === 'hash'
          ? Object.values(await client.hgetallBuffer(name))
          : kind === 'string'
            ? [await client.getBuffer(name)]
            : kind === 'list'
              ? await client.lrangeBuffer(name, 0, -1)
              : [];
      if (values.some((value) => value?.includes(NEEDLE) === true)) holding += 1;
    }
    return holding;
  });
}

test('erasures under load', async (context) => {
  const { fleet, load, key, deleted, targets } = await startWorld();
  let [proved, longestMs, served] = [0, 0, 0];
  for (let round = 0; round < ERASURES; round += 1) {
    const id = `victim_${round}`;
    const own = await load.begin(targets(id), PER_SECOND);
    await sleep(500);
    deleted.add(id);
    const beganMs = performance.now();
    const { erased } = await erase(fleet.gateway(round), id);
    longestMs = Math.max(longestMs, performance.now() - beganMs);
    if (erased) proved += 1;
    const statuses = await Promise.all(
      fleet.gateways.map(async (one) => (await one.get(`/v2/calls/${id}`, key)).status),
    );
    served += statuses.filter((status) => status !== 404).length;
    await load.end(own);
  }
  const inRedis = await valuesWithText(fleet);
  const others = await load.begin(targets('other'), PER_SECOND);
  await sleep(SETTLE_MS);
  const pids = fleet.gateways.flatMap(({ pid, workerPids }) => [pid, ...workerPids]);
  const held = pids.map((pid) => textsIn(pid).size);
  await load.end(others);
  const share = Math.max(...held) / ERASURES;
  prove(
    context,
    {
      name: 'erase',
      bar: `${count(ERASURES)} times in a fleet of four under ${PER_SECOND} reads/s, the record among them, deleted in the store first: every erasure is proved, nobody is served it afterwards, and Redis holds no byte of it`,
      measured: `proved ${count(proved)} times, the longest took ${ms(longestMs)}; served ${served} times; in ${inRedis} values of Redis`,
      ok: proved === ERASURES && served === 0 && inRedis === 0,
    },
    {
      name: 'erase, core image',
      bar: 'how many of the texts are left in freed memory of a process, for it is not overwritten: no promise',
      measured: `at most ${percent(share)} (${held.join(', ')} of ${count(ERASURES)} in ${pids.length} processes)`,
      ok: true,
    },
  );
});

test('no proof', async (context) => {
  const { fleet, load, deleted, targets } = await startWorld();
  const [first, stopped] = [fleet.gateway(0), fleet.gateway(1)];
  const outcomes: string[] = [];
  const note = (what: string, { erased, refetched, processes }: z.output<typeof receiptSchema>): void => {
    const missed = processes.filter(({ reached }) => !reached).length;
    outcomes.push(
      `${what}: ${erased ? 'erased' : 'not erased'}, ${missed} not reached${refetched ? ', refetched' : ''}`,
    );
  };
  // The store still has it, and somebody reads it.
  const own = await load.begin(targets('victim_0'), PER_SECOND);
  await sleep(500);
  note('in the store', await erase(first, 'victim_0'));
  await load.end(own);
  deleted.add('victim_0');
  process.kill(stopped.pid, 'SIGSTOP');
  note('stopped', await erase(first, 'victim_0'));
  await sleep(60_000);
  note('stopped for a minute', await erase(first, 'victim_0'));
  process.kill(stopped.pid, 'SIGCONT');
  await sleep(5000);
  note('back', await erase(first, 'victim_0'));
  const wanted = [
    'in the store: not erased, 0 not reached, refetched',
    'stopped: not erased, 1 not reached',
    'stopped for a minute: not erased, 1 not reached',
    'back: erased, 0 not reached',
  ];
  prove(context, {
    name: 'erase, refused',
    bar: wanted.join('; '),
    measured: outcomes.join('; '),
    ok: outcomes.join() === wanted.join(),
  });
});
