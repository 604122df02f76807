/** Servers measured in turn, so that what else the machine does falls on all of them alike. */
import { load, type Loaded, type LoadOptions } from './load.ts';
import type { Server } from './server.ts';

export interface Subject {
  /** As the table calls it. */
  readonly name: string;
  readonly server: Server;
  readonly load: Omit<LoadOptions, 'seconds'>;
  /** The only statuses that may come; 200 unless it is given. */
  readonly status?: number;
}

export interface Measured {
  readonly name: string;
  /** The median of the rounds. */
  readonly cpuMicros: number;
  /** One per round, in order. */
  readonly roundsMicros: readonly number[];
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
  /** Until V8 has compiled what is hot, and compiled it again where it first guessed wrong. */
  readonly warmUpSeconds: number;
  /** How long memory is watched under load. */
  readonly memorySeconds: number;
}

/**
 * One warm-up of each, then the rounds, every other one in the opposite order: what grows or shrinks all the while falls on
 * nobody more than on others. `warm`: the servers that have had one before; the others become some. Rejects if any
 * answer has another status than it should.
 */
export async function measureInTurn(
  subjects: readonly Subject[],
  { rounds, seconds, warmUpSeconds }: Effort,
  warm: WeakSet<Server>,
): Promise<readonly Measured[]> {
  for (const subject of subjects) {
    const { processes = 1 } = subject.server;
    // Other requests than before take other ways through the same code.
    await once(subject, warm.has(subject.server) ? Math.ceil(warmUpSeconds / 2) : warmUpSeconds * processes);
    warm.add(subject.server);
  }
  const all = new Map<string, Loaded[]>(subjects.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const inOrder = round % 2 === 0 ? subjects : subjects.toReversed();
    for (const subject of inOrder) all.get(subject.name)?.push(await once(subject, seconds));
  }
  return [...all].map(([name, loads]) => ({
    name,
    cpuMicros: median(loads.map(({ cpuMicros }) => cpuMicros)),
    roundsMicros: loads.map(({ cpuMicros }) => cpuMicros),
    requestsPerSecond: median(loads.map((one) => one.requests / one.seconds)),
    p50Ms: median(loads.map(({ latencyMs }) => latencyMs.p50)),
    p99Ms: median(loads.map(({ latencyMs }) => latencyMs.p99)),
  }));
}

async function once({ name, server, load: options, status = 200 }: Subject, seconds: number): Promise<Loaded> {
  const loaded = await load(server, { ...options, seconds });
  const others = Object.keys(loaded.statuses).filter((seen) => seen !== String(status));
  if (others.length > 0) throw new Error(`${name} answered ${JSON.stringify(loaded.statuses)}, not ${status} alone`);
  return loaded;
}

/**
 * How many times as much the one takes as the other: the median of the ratios of each round. The other load of
 * the machine changes more from minute to minute than within a round.
 */
export function timesAsMuch(subject: Measured, reference: Measured): number {
  return median(subject.roundsMicros.map((micros, round) => micros / (reference.roundsMicros[round] ?? Number.NaN)));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
