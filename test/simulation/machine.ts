/**
 * The machine under a simulated process: its time, timers, chance and network. Code of the fleet asks Node for them as it always
 * does, and gets those of the simulation; any other code gets the real ones. So nothing of src knows of it, and what it asks
 * for without being handed a clock is simulated too.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import timersPromises from 'node:timers/promises';
import type { Duplex } from 'node:stream';
import type { SeededRandom } from '../support/random.ts';
import type { Schedule, SimulatedProcess } from './schedule.ts';

export interface MachineOptions {
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  /** A process connects to a port of that host. */
  readonly connect: (process: SimulatedProcess, host: string) => Duplex;
}

/** A timer, as Node's `setTimeout` and `setInterval` return it. */
class SimulatedTimer {
  readonly #plan: () => () => void;
  #cancel: () => void;

  constructor(plan: () => () => void) {
    this.#plan = plan;
    this.#cancel = plan();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }

  refresh(): this {
    this.#cancel();
    this.#cancel = this.#plan();
    return this;
  }

  close(): this {
    this.#cancel();
    return this;
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}

/** The true time that its monotonic clock has passed since the process started. */
export function uptimeMs(schedule: Schedule, process: SimulatedProcess): number {
  return schedule.nowMs - process.startedAtMs;
}

export function wallMs(schedule: Schedule, process: SimulatedProcess): number {
  return Math.floor(schedule.nowMs + process.aheadMs);
}

function run(callback: unknown, args: readonly unknown[]): void {
  if (typeof callback === 'function') Reflect.apply(callback, undefined, args);
}

/** Puts the simulated machine in place. Returns a function that takes it away. */
export function installMachine({ schedule, random, connect }: MachineOptions): () => void {
  const replaced: (() => void)[] = [];
  /** `simulate` gets the process that asks. */
  const replace = <T extends object>(
    target: T,
    name: keyof T,
    simulate: (process: SimulatedProcess, args: readonly unknown[]) => unknown,
  ): void => {
    const real = Object.getOwnPropertyDescriptor(target, name);
    const original: unknown = target[name];
    if (typeof original !== 'function') throw new TypeError(`${String(name)} is no function`);
    const value = (...args: readonly unknown[]): unknown => {
      const process = schedule.current();
      return process === undefined ? Reflect.apply(original, target, args) : simulate(process, args);
    };
    Object.defineProperty(target, name, { value, configurable: true, writable: true });
    replaced.push(() => {
      if (real === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, real);
    });
  };
  const timer = (process: SimulatedProcess, delayMs: number, due: () => void): SimulatedTimer =>
    new SimulatedTimer(() => schedule.after(Math.max(1, delayMs), process, due, true));
  const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => random.integer(0, 255)));

  replace(performance, 'now', (process) => uptimeMs(schedule, process));
  replace(Date, 'now', (process) => wallMs(schedule, process));
  replace(Math, 'random', () => random.next());
  replace(globalThis, 'setTimeout', (process, [callback, delayMs = 1, ...args]) => {
    return timer(process, Number(delayMs), () => run(callback, args));
  });
  replace(globalThis, 'setInterval', (process, [callback, delayMs = 1, ...args]) => {
    const interval = timer(process, Number(delayMs), () => {
      interval.refresh();
      run(callback, args);
    });
    return interval;
  });
  for (const name of ['clearTimeout', 'clearInterval'] as const) {
    replace(globalThis, name, (_, [one]) => {
      if (one instanceof SimulatedTimer) one.close();
    });
  }
  const realImmediate = setImmediate;
  replace(globalThis, 'setImmediate', (_, [callback, ...args]) => {
    const noteRun = schedule.noteImmediate();
    return realImmediate(() => {
      noteRun();
      run(callback, args);
    });
  });
  replace(timersPromises, 'setImmediate', async () => {
    const noteRun = schedule.noteImmediate();
    await new Promise<void>((resolve) => realImmediate(resolve));
    noteRun();
  });
  replace(timersPromises, 'setTimeout', (process, [delayMs = 1, value]) => {
    return new Promise((resolve) => timer(process, Number(delayMs), () => resolve(value)));
  });
  replace(AbortSignal, 'timeout', (process, [delayMs]) => {
    const controller = new AbortController();
    const reason = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    timer(process, Number(delayMs), () => controller.abort(reason));
    return controller.signal;
  });
  replace(crypto, 'randomUUID', () => {
    const hex = bytes(16).toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join(
      '-',
    );
  });
  replace(crypto, 'randomInt', (_, [one, other]) => {
    const [from, to] = other === undefined ? [0, Number(one)] : [Number(one), Number(other)];
    return random.integer(from, to - 1);
  });
  replace(crypto, 'randomBytes', (_, [length]) => bytes(Number(length)));
  replace(net, 'createConnection', (process, [options]) => {
    const host = typeof options === 'object' && options !== null && 'host' in options ? String(options.host) : '';
    return connect(process, host);
  });
  syncBuiltinESMExports();
  return () => {
    for (const restore of replaced.toReversed()) restore();
    syncBuiltinESMExports();
  };
}
