/** The store behind a simulated fleet: records that change, move and go, and every state that they ever had. */
import type { SeededRandom } from '../support/random.ts';
import { anEvaluation, aTranscript } from '../support/records.ts';
import { StoreError } from '../../src/upstream/store-error.ts';
import type { Fetch } from '../../src/upstream/store.ts';
import type { History, RecordState, Shown } from './history.ts';
import type { Schedule, SimulatedProcess } from './schedule.ts';
import { UPSTREAM_TIMEOUT_MS } from './times.ts';

export type StoreMode = 'well' | 'slow' | 'failing';

const PATH = /\/evaluations(?:\/([^/?]+)(\/transcript)?)?(?:\?(.*))?$/;

interface Answer {
  readonly value: object | null;
  readonly etag: string | null;
}

export class SimulatedStore {
  mode: StoreMode = 'well';
  readonly #schedule: Schedule;
  readonly #random: SeededRandom;
  readonly #history: History;
  #versions = 0;

  constructor(schedule: Schedule, random: SeededRandom, history: History) {
    this.#schedule = schedule;
    this.#random = random;
    this.#history = history;
  }

  /** The record is another one from now on; `workspace` is null if it is gone. */
  change(id: string, workspace: string | null): RecordState {
    const states = this.#history.states.get(id) ?? [];
    this.#history.states.set(id, states);
    const { nowMs } = this.#schedule;
    const before = states.at(-1);
    if (before !== undefined) before.untilMs = nowMs;
    this.#versions += 1;
    const state = { id, version: this.#versions, workspace, fromMs: nowMs, untilMs: Infinity };
    states.push(state);
    return state;
  }

  /** The store as that process reaches it. `workspacesOf`: those of the reader with that request id. */
  fetchOf(process: SimulatedProcess, workspacesOf: (requestId: string) => readonly string[]): Fetch {
    return async (resource, params, { requestId, ifNoneMatch }) => {
      const path = resource.path(params);
      const call = {
        process: process.name,
        path,
        workspaces: workspacesOf(requestId),
        startedMs: this.#schedule.nowMs,
        endedMs: null,
      };
      this.#history.calls.push(call);
      try {
        const { value, etag } = await this.#answer(process, path);
        if (value === null) return { kind: 'absent', code: 'NOT_FOUND' };
        if (etag !== null && etag === ifNoneMatch) return { kind: 'not-modified' };
        const record = await resource.parse(value, params, () => undefined);
        return { kind: 'found', record, etag, bytes: 500 };
      } finally {
        Object.assign(call, { endedMs: this.#schedule.nowMs });
      }
    };
  }

  /** The store reads its record some time after the call was sent, and some time before its answer arrives. */
  #answer(process: SimulatedProcess, path: string): Promise<Answer> {
    const { mode } = this;
    const [thereMs, backMs] = [this.#latencyMs(mode), this.#latencyMs(mode)];
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (mode === 'failing') {
      const isSilent = this.#random.next() < 0.1;
      const error = new StoreError(isSilent ? 'timeout' : 'unreachable', `${path}: the store fails`);
      this.#schedule.after(isSilent ? UPSTREAM_TIMEOUT_MS : thereMs, process, () => reject(error));
      return promise;
    }
    this.#schedule.after(thereMs, null, () => {
      const answer = this.#read(path);
      this.#schedule.after(backMs, process, () => resolve(answer));
    });
    return promise;
  }

  #latencyMs(mode: StoreMode): number {
    const usualMs = 5 - 40 * Math.log(1 - this.#random.next());
    return mode === 'slow' ? 10 * usualMs : usualMs;
  }

  #read(path: string): Answer {
    const [, id, part, query = ''] = PATH.exec(path) ?? [];
    if (id === undefined) {
      const asked = new URLSearchParams(query).getAll('workspaceId');
      const found = [...this.#history.states.keys()].flatMap((each) => this.#history.current(each) ?? []);
      const items = found.filter(({ workspace }) => workspace !== null && asked.includes(workspace));
      return { value: { items: items.map(evaluationOf), total: items.length }, etag: null };
    }
    const state = this.#history.current(id);
    if (state === undefined || state.workspace === null) return { value: null, etag: null };
    return { value: part === undefined ? evaluationOf(state) : transcriptOf(state), etag: `"${state.version}"` };
  }
}

function nameOf({ id, version }: Shown): string {
  return `${id}#${version}`;
}

function evaluationOf(state: RecordState): object {
  return anEvaluation({ _id: state.id, workspaceId: state.workspace ?? '', title: nameOf(state) });
}

function transcriptOf(state: RecordState): object {
  return aTranscript({ evaluationId: state.id, workspaceId: state.workspace ?? '', body: nameOf(state) });
}

/** The state that a record shows; throws if it shows none. */
export function shownIn(record: unknown): Shown {
  const text = typeof record === 'object' && record !== null ? Object.values(record) : [];
  for (const value of text) {
    const [, id, version] = (typeof value === 'string' && /^(ev_\d+)#(\d+)$/.exec(value)) || [];
    if (id !== undefined) return { id, version: Number(version) };
  }
  throw new Error('the record shows no state of the store');
}
