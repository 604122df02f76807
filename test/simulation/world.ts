/** The life of a simulated fleet: it opens, all that is planned happens, the troubles end, and at rest everything is read again. */
import { WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { Fleet } from './fleet.ts';
import type { History, Span } from './history.ts';
import { installMachine } from './machine.ts';
import { type Action, KEYS, MAIN_MS, type Plan, RECORDS } from './plan.ts';
import { UPSTREAM_TIMEOUT_MS } from './times.ts';
import type { Backup } from './redis/keyspace.ts';

const OPENING_MS = 300;
/** After the last trouble: the longest waits, for a silent store and between two tries to connect, are over by then. */
const CALM_MS = 4500;
/** A Redis that is late by no more is slow, and answers well: all rules hold. */
const SLOW_MS = 30;
/** Between the last reads of all, and after them. */
const LAST_MS = 1200;

export interface Life {
  readonly plan: Plan;
  readonly history: History;
  /** From then on there were no more troubles. */
  readonly calmMs: number;
  /** The error after which the fleet could not go on, such as a loop without end; null if it went on to its end. */
  readonly failure: Error | null;
}

/** `onCommand` is called with what is sent to a Redis. */
export async function live(plan: Plan, onCommand?: (words: readonly string[]) => void): Promise<Life> {
  const fleet = new Fleet(plan, onCommand);
  const { schedule, random, network, history } = fleet;
  const uninstall = installMachine({
    schedule,
    random,
    connect: (process, host) => network.connect(process, host),
  });
  let calmMs = Infinity;
  try {
    await open(fleet);
    new Course(fleet).begin();
    await schedule.runUntil(schedule.nowMs + MAIN_MS);
    fleet.endMessageFaults();
    calmMs = schedule.nowMs;
    history.note(calmMs, '', 'all troubles are over');
    await schedule.runUntil(calmMs + CALM_MS);
    for (let round = 0; round < 2; round += 1) {
      readAll(fleet);
      await schedule.runUntil(schedule.nowMs + LAST_MS);
    }
    return { plan, history, calmMs, failure: null };
  } catch (error) {
    return { plan, history, calmMs, failure: error instanceof Error ? error : new Error(String(error)) };
  } finally {
    uninstall();
  }
}

async function open(fleet: Fleet): Promise<void> {
  const { plan, schedule, history } = fleet;
  for (const [place, id] of RECORDS.entries()) fleet.store.change(id, place === 2 ? WORKSPACE_B : WORKSPACE_A);
  history.clockSpreadMs = Math.max(...plan.aheadMs) - Math.min(...plan.aheadMs);
  for (let slot = 0; slot < plan.gateways; slot += 1) fleet.start(slot);
  await schedule.runUntil(schedule.nowMs + OPENING_MS);
  for (const place of KEYS.keys()) fleet.makeKey(0, place);
  await schedule.runUntil(schedule.nowMs + OPENING_MS);
  if (fleet.keys.length !== KEYS.length) throw new Error('the keys could not be made');
}

function readAll(fleet: Fleet): void {
  for (let slot = 0; slot < fleet.plan.gateways; slot += 1) {
    for (const key of [0, 2, 3]) {
      for (const id of RECORDS) fleet.read(slot, key, { kind: 'evaluation', id });
      fleet.read(slot, key, { kind: 'list', id: null });
    }
  }
}

/** The actions of the plan, and when each of its troubles ends: all of them by the end of the main part. */
class Course {
  readonly #fleet: Fleet;
  readonly #beginMs: number;
  /** A copy of a Redis from before the writes that its failover loses. */
  readonly #backups = new Map<Action, Backup>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#beginMs = fleet.schedule.nowMs;
  }

  begin(): void {
    const { schedule, plan, hosts } = this.#fleet;
    for (const { atMs, action } of plan.actions) {
      schedule.at(this.#beginMs + atMs, null, () => this.#do(action));
      if (action.do !== 'redis-down' || action.lostMs === 0) continue;
      schedule.at(this.#beginMs + Math.max(0, atMs - action.lostMs), null, () => {
        const model = hosts.get(hostName(action.host))?.model;
        if (model !== undefined) this.#backups.set(action, model.backup());
      });
    }
  }

  #do(action: Action): void {
    const fleet = this.#fleet;
    switch (action.do) {
      case 'read':
        return fleet.read(action.slot, action.key, action.target);
      case 'edit':
      case 'move':
      case 'delete':
        return this.#change(action.do, action.id);
      case 'announce':
        return this.#announce(action);
      case 'follow':
        return fleet.follow();
      case 'purge':
        return fleet.purge(action.slot, action.tag);
      case 'end-key':
        return fleet.endKey(action.slot, action.key);
      case 'times':
        return fleet.setFreshTime(action.slot, action.freshMs);
      case 'maintain':
        this.#trouble(fleet.history.storeTroubles, action.forMs);
        return fleet.maintain(action.slot, action.forMs);
      case 'roll':
        fleet.kill(action.slot);
        return fleet.start(action.slot);
      case 'kill':
        fleet.kill(action.slot);
        return this.#later(action.forMs, () => {
          if (fleet.processAt(action.slot).state === 'killed') fleet.start(action.slot);
        });
      case 'pause':
        return this.#pause(action);
      case 'step-clock':
        return this.#stepClock(action);
      case 'store':
        return this.#troubleStore(action);
      case 'redis-cut':
      case 'redis-down':
      case 'redis-emptied':
      case 'redis-late':
        return this.#troubleRedis(action);
    }
  }

  #change(how: 'edit' | 'move' | 'delete', id: string): void {
    const { store, history, schedule } = this.#fleet;
    const before = history.current(id)?.workspace ?? null;
    const moved = before === WORKSPACE_A ? WORKSPACE_B : WORKSPACE_A;
    const workspace = how === 'edit' ? (before ?? WORKSPACE_A) : how === 'move' ? moved : null;
    const { version } = store.change(id, workspace);
    const where = workspace === null ? 'is gone' : `is of workspace ${workspace === WORKSPACE_A ? 'A' : 'B'}`;
    history.note(schedule.nowMs, 'store', `${id}#${version} ${where}`);
  }

  #announce({ slots, id, isNamed }: Extract<Action, { do: 'announce' }>): void {
    const { store, history, schedule } = this.#fleet;
    const workspace = history.current(id)?.workspace ?? null;
    if (workspace === null) return;
    const { version } = store.change(id, workspace);
    history.note(schedule.nowMs, 'store', `${id}#${version} is announced`);
    const name = isNamed ? `announcement-${version}` : null;
    for (const slot of slots) this.#fleet.announce(slot, id, name);
  }

  #pause({ slot, forMs }: Extract<Action, { do: 'pause' }>): void {
    const { schedule, history } = this.#fleet;
    const process = this.#fleet.processAt(slot);
    if (process.state !== 'running') return;
    process.state = 'paused';
    const spans = history.pauses.get(process.name) ?? [];
    history.pauses.set(process.name, spans);
    this.#trouble(spans, forMs);
    history.note(schedule.nowMs, process.name, `is paused for ${forMs} ms`);
    this.#later(forMs, () => {
      schedule.resume(process);
      history.note(schedule.nowMs, process.name, 'goes on');
    });
  }

  #stepClock({ slot, byMs }: Extract<Action, { do: 'step-clock' }>): void {
    const { schedule, history, plan } = this.#fleet;
    const process = this.#fleet.processAt(slot);
    process.aheadMs += byMs;
    history.note(schedule.nowMs, process.name, `has its clock set by ${byMs} ms`);
    const steps = plan.actions.map(({ action }) => (action.do === 'step-clock' ? Math.abs(action.byMs) : 0));
    history.clockSpreadMs = Math.max(history.clockSpreadMs, 3000 + steps.reduce((sum, step) => sum + step, 0));
  }

  #troubleStore({ mode, forMs }: Extract<Action, { do: 'store' }>): void {
    const { store, history, schedule } = this.#fleet;
    store.mode = mode;
    // A call that was sent meanwhile may be given up so much later.
    this.#trouble(history.storeTroubles, forMs + UPSTREAM_TIMEOUT_MS);
    history.note(schedule.nowMs, 'store', `is ${mode} for ${forMs} ms`);
    this.#later(forMs, () => {
      store.mode = 'well';
    });
  }

  #troubleRedis(action: Extract<Action, { readonly host: number }>): void {
    const { hosts, history, network, schedule } = this.#fleet;
    const name = hostName(action.host);
    const host = hosts.get(name);
    if (host === undefined) return;
    const { nowMs } = schedule;
    const lose = (backupMs: number): void => void history.losses.push({ host: name, backupMs, atMs: schedule.nowMs });
    switch (action.do) {
      case 'redis-emptied':
        host.model.keyspace.clear();
        history.note(nowMs, name, 'Redis is emptied');
        return lose(-Infinity);
      case 'redis-late':
        host.lateMs = action.lateMs;
        if (action.lateMs > SLOW_MS) {
          this.#trouble(history.troubles, action.forMs + action.lateMs, { process: null });
        }
        history.note(nowMs, name, `Redis is late by ${action.lateMs} ms, for ${action.forMs} ms`);
        return this.#later(action.forMs, () => {
          host.lateMs = 0;
        });
      case 'redis-cut': {
        const process = this.#fleet.processAt(action.slot);
        network.cut(name, process);
        this.#trouble(history.troubles, action.forMs, { process: process.name });
        history.note(nowMs, name, `Redis is out of reach for ${process.name}, for ${action.forMs} ms`);
        return this.#later(action.forMs, () => network.heal(name, process));
      }
      case 'redis-down': {
        host.isUp = false;
        network.reset(name);
        this.#trouble(history.troubles, action.forMs, { process: null });
        history.note(nowMs, name, `Redis is down for ${action.forMs} ms, and loses the last ${action.lostMs} ms`);
        return this.#later(action.forMs, () => {
          const backup = this.#backups.get(action);
          if (backup !== undefined) {
            host.model.restore(backup);
            lose(nowMs - action.lostMs);
          }
          host.isUp = true;
        });
      }
    }
  }

  /** Notes a trouble of now. */
  #trouble<S extends object>(spans: (Span & S)[], forMs: number, about?: S): void {
    const { nowMs } = this.#fleet.schedule;
    spans.push(Object.assign({ fromMs: nowMs, untilMs: Math.min(nowMs + forMs, this.#endMs) }, about));
  }

  #later(delayMs: number, run: () => void): void {
    const { schedule } = this.#fleet;
    schedule.at(Math.min(schedule.nowMs + delayMs, this.#endMs), null, run);
  }

  get #endMs(): number {
    return this.#beginMs + MAIN_MS - 1;
  }
}

function hostName(place: number): string {
  return place === 0 ? 'state' : 'cache';
}
