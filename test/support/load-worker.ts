/** The load generator's own process. */
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { type Closed, type LoadCommand, loadCommandSchema, type Sample, type Target } from './load-commands.ts';
import { answerCalls } from './worker-calls.ts';

const TICK_MS = 2;
const GIVE_UP_MS = 30_000;
const BYTE_EVERY_MS = 1000;
const CONNECTED_AT_ONCE = 10;
const CONNECT_EVERY_MS = 10;

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
let samples: Sample[] = [];
let underWay = new Set<Promise<void>>();
let timer: NodeJS.Timeout | null = null;

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

function begin(targets: readonly Target[], perSecond: number): void {
  samples = [];
  underWay = new Set();
  const beganMs = performance.now();
  let sent = 0;
  timer = setInterval(() => {
    const due = ((performance.now() - beganMs) * perSecond) / 1000;
    for (; sent < due; sent += 1) {
      const target = targets[sent % targets.length];
      if (target !== undefined) ask(target);
    }
  }, TICK_MS);
}

function ask(target: Target): void {
  const asked = keep(target).finally(() => underWay.delete(asked));
  underWay.add(asked);
}

async function keep(target: Target): Promise<void> {
  samples.push(await sample(target));
}

function sample({ url, key, tag }: Target): Promise<Sample> {
  const [atMs, beganMs] = [nowMs(), performance.now()];
  const none = { status: 0, cacheStatus: null, ageSeconds: null, id: null, title: null };
  return new Promise((resolve) => {
    const settle = (how: Answered): void => resolve({ tag, url, atMs, tookMs: performance.now() - beganMs, ...how });
    const headers = key === null ? {} : { authorization: `Bearer ${key}` };
    const request = get(url, { agent, headers, timeout: GIVE_UP_MS }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () => settle(answered(response, body)));
      response.on('error', () => settle(none));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => settle(none));
  });
}

type Answered = Omit<Sample, 'tag' | 'url' | 'atMs' | 'tookMs'>;

function answered({ statusCode = 0, headers }: IncomingMessage, body: string): Answered {
  return {
    status: statusCode,
    cacheStatus: typeof headers['cache-status'] === 'string' ? headers['cache-status'] : null,
    ageSeconds: headers.age === undefined ? null : Number(headers.age),
    id: /"id":"([^"]*)"/.exec(body)?.[1] ?? null,
    title: /"name":"([^"]*)"/.exec(body)?.[1] ?? null,
  };
}

async function end(): Promise<readonly Sample[]> {
  if (timer !== null) clearInterval(timer);
  await Promise.all(underWay);
  return samples;
}

async function slowloris(url: string, sockets: number): Promise<readonly Closed[]> {
  const closed: Promise<Closed>[] = [];
  for (let index = 0; index < sockets; index += 1) {
    closed.push(slowSocket(url, index));
    // Not all in one moment, in which nobody else would be served.
    if (index % CONNECTED_AT_ONCE === 0) await new Promise<void>((resolve) => setTimeout(resolve, CONNECT_EVERY_MS));
  }
  return Promise.all(closed);
}

function slowSocket(url: string, index: number): Promise<Closed> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let received = '';
    let beganMs = performance.now();
    const socket = connect(Number(port), hostname, () => {
      beganMs = performance.now();
      socket.write(`GET /v2/calls HTTP/1.1\r\nHost: a\r\nX-Slow: `);
    });
    // Not all at once, as they would not be.
    const drip = setInterval(() => socket.write('x'), BYTE_EVERY_MS + (index % 100));
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(drip);
      resolve({ afterMs: performance.now() - beganMs, status: Number(received.split(' ')[1] ?? 0) });
    });
  });
}

async function answer(command: LoadCommand): Promise<unknown> {
  switch (command.name) {
    case 'begin':
      begin(command.targets, command.perSecond);
      return null;
    case 'end':
      return end();
    case 'slowloris':
      break;
  }
  return slowloris(command.url, command.sockets);
}

answerCalls((command) => answer(loadCommandSchema.parse(command)));
