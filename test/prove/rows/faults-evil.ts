/** A store that does its worst costs a clear failure in time, and nothing that lasts. */
import { Closers, sleep } from '../../support/faults-world.ts';
import { createEvilStore, EVIL_BEHAVIOURS, type Evil, type EvilStore } from '../../support/evil-store.ts';
import { GatewayProcess } from '../../support/gateway-process.ts';
import { WORKSPACE_A } from '../../support/records.ts';
import { count, ms, type Row, type Scale, loadSlackMs } from '../row.ts';

const DEADLINE_MS = 2000;
const MORE_MEMORY_BYTES = 64 * 2 ** 20;
const HELD_MS = 200;
const MEGABYTE = 2 ** 20;
const WELL_WITHIN_MS = 1000;
const GIVE_UP_MS = 10_000;
const AT_ONCE = 2;
/** One of each kind that is about time, memory or the event loop. */
const SHORT: readonly Evil[] = ['gzip bomb', 'deep arrays', 'slow drip of a body'];
/** What need be no failure: good answers, also where another comes after, and records that are left out. */
const HARMLESS: ReadonlySet<Evil> = new Set([
  'well',
  'two answers to one request',
  'a late second answer',
  'wrong workspace',
]);

interface Trial {
  readonly evil: Evil;
  readonly statuses: readonly number[];
  readonly tookMs: number;
  readonly moreBytes: number;
  readonly heldMs: number;
  readonly heldCpuMs: number;
  readonly wellAfterMs: number;
  readonly isClear: boolean;
}

export async function run(scale: Scale): Promise<readonly Row[]> {
  const evils = scale === 'whole' ? behaviours() : SHORT;
  const trials: Trial[] = [];
  const left = [...evils];
  const work = async (): Promise<void> => {
    for (let evil = left.shift(); evil !== undefined; evil = left.shift()) trials.push(await trial(evil));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return [rowOf(trials, scale)];
}

function isEvil(name: string): name is Evil {
  return Object.hasOwn(EVIL_BEHAVIOURS, name);
}

function behaviours(): readonly Evil[] {
  return Object.keys(EVIL_BEHAVIOURS).filter(isEvil);
}

function rowOf(trials: readonly Trial[], scale: Scale): Row {
  const failing = trials.filter(({ evil }) => !HARMLESS.has(evil));
  const worst = (of: (trial: Trial) => number): Trial | undefined => trials.toSorted((a, b) => of(b) - of(a))[0];
  const [slowest, heaviest, holder, last] = [
    worst(({ tookMs }) => tookMs),
    worst(({ moreBytes }) => moreBytes),
    worst(({ heldCpuMs }) => heldCpuMs),
    worst(({ wellAfterMs }) => wellAfterMs),
  ];
  const allowedMs = DEADLINE_MS + 500 + loadSlackMs(scale);
  const isOk = (one: Trial): boolean =>
    one.isClear &&
    one.tookMs <= allowedMs &&
    one.moreBytes <= MORE_MEMORY_BYTES &&
    one.heldCpuMs <= HELD_MS &&
    one.wellAfterMs <= WELL_WITHIN_MS + loadSlackMs(scale);
  const missed = trials.filter((one) => !isOk(one));
  return {
    name: 'evil store',
    bar: `${trials.length} ways to misbehave, a fresh gateway each: a clear 500 within ${ms(allowedMs)} (deadline ${ms(DEADLINE_MS)}), at most 64 MB more memory, event loop never held over ${HELD_MS} ms of its thread's CPU; well again within ${ms(WELL_WITHIN_MS + loadSlackMs(scale))}`,
    measured: `${count(failing.filter(({ isClear }) => isClear).length)} of ${failing.length} clear 500s, after ${ms(slowest?.tookMs ?? 0)} at most (${slowest?.evil}); at most ${Math.round((heaviest?.moreBytes ?? 0) / MEGABYTE)} MB more (${heaviest?.evil}); held ${ms(holder?.heldCpuMs ?? 0)} at most (${holder?.evil}; ${ms(Math.max(...trials.map(({ heldMs }) => heldMs)))} by the clock); well again after ${ms(last?.wellAfterMs ?? 0)} at most${missed.map((one) => `; ${JSON.stringify(one)}`).join('')}`,
    ok: missed.length === 0 && trials.length > 0,
  };
}

async function trial(evil: Evil): Promise<Trial> {
  const closers = new Closers();
  try {
    const store = await closers.keep(createEvilStore('well'), (opened) => opened.close());
    const env = { UPSTREAM_URL: store.url, UPSTREAM_TIMEOUT: `${DEADLINE_MS}ms` };
    const gateway = await closers.keep(GatewayProcess.start({ env }), (opened) => opened.kill());
    return await suffer(evil, store, gateway);
  } finally {
    await closers.close();
  }
}

async function suffer(evil: Evil, store: EvilStore, gateway: GatewayProcess): Promise<Trial> {
  const key = await gateway.issueKey();
  const read = (path: string): Promise<Answer> => ask(gateway.publicUrl + path, key);
  // Its code is loaded and compiled, so that what follows is the store's doing.
  for (const id of ['a', 'b', 'c']) await read(`/v2/calls/${id}`);
  await read('/v2/calls');
  await sleep(200);
  gateway.forgetPeaks();
  const { nowBytes } = gateway.memory();
  store.behave(evil);
  const answers = await Promise.all([read('/v2/calls/ev_9'), read(`/v1/workspaces/${WORKSPACE_A}/reports?limit=7`)]);
  await sleep(100);
  const { heldMs, heldCpuMs } = gateway.hold();
  const moreBytes = gateway.memory().peakBytes - nowBytes;
  const wellAfterMs = await wellAfter(store, read);
  return {
    evil,
    statuses: answers.map(({ status }) => status),
    tookMs: Math.max(...answers.map(({ tookMs }) => tookMs)),
    moreBytes,
    heldMs,
    heldCpuMs,
    wellAfterMs,
    isClear: answers.every((one) => isFailure(one) || (HARMLESS.has(evil) && isHarmless(one))),
  };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly tookMs: number;
}

async function ask(url: string, key: string): Promise<Answer> {
  const beganMs = performance.now();
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  const text = await response.text();
  return { status: response.status, text, tookMs: performance.now() - beganMs };
}

/** A plain sentence in the form of the surface, and no record of anybody. */
function isFailure({ status, text }: Answer): boolean {
  return (
    status === 500 && /"(?:message|error)":"The (?:evaluation store|gateway) [^"]+\."/.test(text) && isNobodys(text)
  );
}

function isHarmless({ status, text }: Answer): boolean {
  return (status === 200 || status === 404) && isNobodys(text);
}

function isNobodys(text: string): boolean {
  return !text.includes('someone_elses');
}

/** Milliseconds until a question that was never asked is answered. */
async function wellAfter(store: EvilStore, read: (path: string) => Promise<Answer>): Promise<number> {
  store.behave('well');
  const beganMs = performance.now();
  for (let attempt = 0; performance.now() - beganMs < GIVE_UP_MS; attempt += 1) {
    if ((await read(`/v2/calls/after_${attempt}`)).status === 200) break;
    await sleep(20);
  }
  return performance.now() - beganMs;
}
