/** The generator's own process. */
import { randomUUID } from 'node:crypto';
import { Agent, get } from 'node:http';
import { type Answered, type PressureCommand, pressureCommandSchema } from './pressure-commands.ts';
import { answerCalls } from './worker-calls.ts';

const TICK_MS = 2;
const GIVE_UP_MS = 30_000;

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const run = randomUUID().slice(0, 8);
let lastId = 0;

function newId(): string {
  lastId += 1;
  return `${run}-${lastId}`;
}

/** The status of the answer, 0 where no whole one came. */
function ask(url: string, key: string | null, from: Agent): Promise<number> {
  return new Promise((resolve) => {
    const headers = key === null ? {} : { authorization: `Bearer ${key}` };
    const request = get(url, { agent: from, headers, timeout: GIVE_UP_MS }, (response) => {
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', () => resolve(0));
      response.resume();
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(0));
  });
}

async function open({ url, key, perSecond, forMs, ids }: Extract<PressureCommand, { name: 'open' }>) {
  const beganMs = performance.now();
  const asked: Promise<Answered>[] = [];
  const total = Math.floor((forMs * perSecond) / 1000);
  const one = async (index: number): Promise<Answered> => {
    const dueMs = beganMs + (index * 1000) / perSecond;
    const lateMs = performance.now() - dueMs;
    const id = ids === null ? newId() : `warm-${index % ids}`;
    const status = await ask(url.replace('%', id), key, agent);
    return { dueAtMs: performance.timeOrigin + dueMs, tookMs: performance.now() - dueMs, lateMs, status };
  };
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(total, ((performance.now() - beganMs) * perSecond) / 1000);
      while (asked.length < due) asked.push(one(asked.length));
      if (asked.length < total) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
  return Promise.all(asked);
}

async function closed({ url, connections, forMs }: Extract<PressureCommand, { name: 'closed' }>): Promise<number> {
  const own = new Agent({ keepAlive: true, maxSockets: connections });
  const endMs = performance.now() + forMs;
  let answered = 0;
  const connection = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const status = await ask(url.replace('%', newId()), null, own);
      if (status === 200 && performance.now() < endMs) answered += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  own.destroy();
  return answered;
}

answerCalls((command) => {
  const wanted = pressureCommandSchema.parse(command);
  return wanted.name === 'open' ? open(wanted) : closed(wanted);
});
