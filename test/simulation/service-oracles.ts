/** The rules on keys, quotas, calls to the store and waits, held against what a simulated fleet has done. */
import { Bounds, type Violation } from './bounds.ts';
import { type Change, type ReadEvent, type StoreCall } from './history.ts';
import { KEYS } from './plan.ts';
import { describe } from './record-oracles.ts';
import type { Life } from './world.ts';

const MINUTE_MS = 60_000;
/** The slowest answer of a store that is well, and a few trips to Redis. */
const ANSWERED_MS = 1500;
/** The lease of a process that has stopped lapses by then, and its waiters go on. */
const LEASE_MS = 2100;
/** A waiter hears of the end of a call by a message, and looks at Redis. */
const WOKEN_MS = 150;

export function serviceOracles(life: Life): readonly Violation[] {
  const bounds = new Bounds(life);
  return [
    ...keyOracle(life, bounds),
    ...quotaOracle(life),
    ...callOracle(life, bounds),
    ...wakingOracle(life, bounds),
    ...answerOracle(life, bounds),
    ...restOracle(life),
  ];
}

/** C8, K10: a key that was ended lets nobody in, and lets nothing out; a good key is never refused. */
function* keyOracle({ history }: Life, bounds: Bounds): Iterable<Violation> {
  const ended = new Set<string>();
  for (const change of history.changes) {
    const { what } = change;
    if (what.kind !== 'revoke' && what.kind !== 'workspaces') continue;
    ended.add(what.key);
    // A revocation that Redis has lost is undone.
    if (bounds.isLost(change.startedMs)) continue;
    for (const read of history.reads) {
      if (read.key === what.key && isAgainst(change, read, history) && bounds.isWellFor(read)) {
        yield {
          rule: 'K10',
          atMs: read.endedMs ?? read.startedMs,
          text: `${describe(read)} was answered after ${what.kind}`,
        };
      }
    }
  }
  for (const read of history.reads) {
    const { result, key, process, startedMs, endedMs } = read;
    if (result?.kind !== 'refused' || ended.has(key) || bounds.isLost(0)) continue;
    if (bounds.isSteady(process, startedMs, endedMs ?? Infinity)) {
      yield { rule: 'K4', atMs: startedMs, text: `${describe(read)} was refused (${result.reason}) with a good key` };
    }
  }
}

function isAgainst(change: Change, read: ReadEvent, history: Life['history']): boolean {
  const { what } = change;
  const { result, endedMs, process, startedMs, admittedMs } = read;
  if (result === null || endedMs === null || !Bounds.isInForce(change, process, endedMs)) return false;
  if (what.kind === 'revoke') {
    return result.kind === 'shown' || (admittedMs !== null && Bounds.isInForce(change, process, startedMs));
  }
  if (what.kind !== 'workspaces' || result.kind !== 'shown') return false;
  return result.shown.some((one) => history.stateOf(one)?.workspace === what.lost);
}

/** R1: while Redis answers, no span of a minute holds more than the limit. */
function* quotaOracle({ history }: Life): Iterable<Violation> {
  if (history.troubles.length > 0 || history.losses.length > 0) return;
  const names = new Set(history.reads.map(({ key }) => key));
  for (const name of names) {
    const limit = KEYS[Number(name.slice(1, 2)) - 1]?.perMinute ?? null;
    if (limit === null) continue;
    const admitted = history.reads.flatMap(({ key, admittedMs }) => (key === name ? (admittedMs ?? []) : []));
    const inOrder = admitted.toSorted((one, other) => one - other);
    const beyond = inOrder.findIndex((atMs, place) => atMs - (inOrder[place - limit] ?? -Infinity) < MINUTE_MS);
    const atMs = inOrder[beyond];
    if (atMs !== undefined)
      yield { rule: 'R1', atMs, text: `${name} was let in ${beyond + 1} times, and may be ${limit} times` };
  }
}

/** C10: one call per key and set of workspaces at a time. Only readers of one workspace are looked at: their set is known. */
function* callOracle({ history }: Life, bounds: Bounds): Iterable<Violation> {
  const calls = history.calls.filter(({ workspaces }) => workspaces.length === 1);
  for (const [place, call] of calls.entries()) {
    const { startedMs, process } = call;
    const others = calls
      .slice(0, place)
      .filter((other) => isSameFlight(other, call) && (other.endedMs ?? Infinity) > startedMs);
    for (const other of others) {
      const isSteady = [process, other.process].every((one) => bounds.isSteady(one, other.startedMs, startedMs));
      if (!isSteady || bounds.isLost(other.startedMs)) continue;
      const text = `${process} calls the store for ${call.path} while the call of ${other.process} is under way`;
      yield { rule: 'C10', atMs: startedMs, text: `${text} since ${Bounds.shown(other.startedMs)}` };
    }
  }
}

function isSameFlight(one: StoreCall, other: StoreCall): boolean {
  return one.path === other.path && one.workspaces[0] === other.workspaces[0];
}

/** Who waits for a call hears of its end at once, whichever process makes it, unless the message is lost. */
function* wakingOracle({ history, plan }: Life, bounds: Bounds): Iterable<Violation> {
  if (plan.messageFaults > 0) return;
  for (const read of history.reads) {
    const { process, startedMs, endedMs, target, ownWorkspaces: workspaces } = read;
    if (endedMs === null || workspaces.length !== 1) continue;
    const of = history.calls.filter((call) => {
      const isOfTarget = target.id === null ? call.path.includes('?') : call.path.endsWith(pathEnd(target));
      // The renewal of a copy is the call of its workspace, whoever causes it.
      return isOfTarget && workspaces.every((id) => call.workspaces.includes(id)) && call.startedMs <= endedMs;
    });
    const under = of.filter((call) => (call.endedMs ?? Infinity) >= startedMs);
    const lastMs = Math.max(...under.map((call) => call.endedMs ?? Infinity));
    if (under.length === 0 || lastMs > endedMs - WOKEN_MS) continue;
    if (under.some((call) => !bounds.isSteady(call.process, call.startedMs, endedMs))) continue;
    if (!bounds.isSteady(process, startedMs, endedMs) || bounds.isLost(startedMs - ANSWERED_MS)) continue;
    const text = `${describe(read)} got its answer ${Math.round(endedMs - lastMs)} ms after the call that it waited for`;
    yield { rule: 'C10', atMs: endedMs, text };
  }
}

function pathEnd({ kind, id }: ReadEvent['target']): string {
  return kind === 'transcript' ? `/${id}/transcript` : `/${id}`;
}

/** S2: while all is well a read is answered, and soon; and nothing waits for ever. */
function* answerOracle({ history, calmMs }: Life, bounds: Bounds): Iterable<Violation> {
  for (const read of history.reads) {
    const { process, startedMs, endedMs, result } = read;
    if ((history.kills.get(process) ?? Infinity) < Infinity) continue;
    if (endedMs === null) {
      yield { rule: 'R6', atMs: startedMs, text: `${describe(read)} has no answer at the end` };
      continue;
    }
    const isWell =
      bounds.isStoreWell(startedMs, endedMs) &&
      bounds.isSteady(process, startedMs, endedMs) &&
      !bounds.isLost(startedMs - Bounds.REMEMBERED_MS);
    if (!isWell && startedMs < calmMs + Bounds.REMEMBERED_MS) continue;
    // A maintenance ends by each process's own clock.
    const isPaused = result?.kind === 'failed' && result.reason === 'paused' && history.clockSpreadMs > 0;
    if (result?.kind === 'failed' && !isPaused)
      yield { rule: 'S2', atMs: endedMs, text: `${describe(read)} failed: ${result.reason}` };
    const isHeldUp = history.hasStopped(startedMs - LEASE_MS, endedMs);
    if (endedMs - startedMs > ANSWERED_MS + (isHeldUp ? LEASE_MS : 0)) {
      yield { rule: 'S2', atMs: endedMs, text: `${describe(read)} took ${Math.round(endedMs - startedMs)} ms` };
    }
  }
}

/** At rest everything converges: the last reads of all show what the store has. */
function* restOracle({ history, calmMs, failure }: Life): Iterable<Violation> {
  if (failure !== null) yield { rule: 'S2', atMs: calmMs, text: `the fleet cannot go on: ${failure.message}` };
  if (history.clockSpreadMs > 0) return;
  const last = Math.max(...history.reads.map(({ startedMs }) => startedMs));
  for (const read of history.reads.filter(({ startedMs }) => startedMs === last && startedMs > calmMs)) {
    const { result, target, workspaces, endedMs } = read;
    if (target.id === null || (result?.kind !== 'shown' && result?.kind !== 'absent')) continue;
    const state = history.current(target.id);
    const isThere = state !== undefined && state.workspace !== null && workspaces.includes(state.workspace);
    const shown = result.kind === 'shown' ? result.shown[0]?.version : undefined;
    if (shown === (isThere ? state.version : undefined)) continue;
    const text = `${describe(read)} got ${shown === undefined ? 'nothing' : `#${shown}`} at rest, not #${state?.version}`;
    yield { rule: 'C2', atMs: endedMs ?? last, text };
  }
}
