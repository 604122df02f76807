/** The example of docs/sync.md, a store that somebody works with, and a consumer that keeps a copy of it. */
import { join } from 'node:path';
import { vi } from 'vitest';
import { z } from 'zod';
import { metricOf } from './admin.ts';
import type { EvaluationRecord } from '../../src/domain/records.ts';
import type { TestGateway } from './gateway.ts';
import { anEvaluation, WORKSPACE_A } from './records.ts';

export const EXAMPLE = join(import.meta.dirname, '../../docs/examples/sync-calls.js');
export const TIMES = { SECOND: 1000, MINUTE: 60_000, HOUR: 3_600_000 } as const;

const callSchema = z.looseObject({ id: z.string(), score: z.number() });
export const changeSchema = z.object({ change: z.enum(['new', 'changed', 'gone']), call: callSchema });
export const stateSchema = z.object({ calls: z.record(z.string(), z.object({ call: callSchema })) });
const resultSchema = z.object({ isWhole: z.boolean(), requests: z.number() });
type Change = z.output<typeof changeSchema>;
type Result = z.output<typeof resultSchema>;

const exampleSchema = z.object({
  newState: z.custom<() => object>((value) => typeof value === 'function'),
  syncCalls: z.custom<(options: object) => Promise<unknown>>((value) => typeof value === 'function'),
});

export type SyncExample = z.output<typeof exampleSchema>;

export async function loadExample(): Promise<SyncExample> {
  const module: unknown = await import(EXAMPLE);
  return exampleSchema.parse(module);
}

export class SyncWorld {
  readonly gateway: TestGateway;
  readonly changes: Change[] = [];
  readonly waits: number[] = [];
  readonly logLines: string[] = [];
  key = '';
  /** The workspace that the example is asked for; undefined for the only one of the key. */
  workspaceId: string | undefined = WORKSPACE_A;
  state: object;
  beforeRequest: (path: string) => void | Promise<void> = () => {};
  onWait: () => void = () => {};
  readonly #example: SyncExample;
  readonly #listedSinceMs = new Map<string, number>();
  #made = 0;

  constructor(gateway: TestGateway, example: SyncExample) {
    this.gateway = gateway;
    this.#example = example;
    this.state = example.newState();
  }

  get nowMs(): number {
    return this.gateway.clock.nowMs();
  }

  get records(): EvaluationRecord[] {
    return [...this.#listedSinceMs.keys()].map((id) => this.record(id));
  }

  record(id: string): EvaluationRecord {
    const record = this.gateway.store.evaluations.get(id);
    if (record === undefined) throw new Error(`There is no ${id}`);
    return z.custom<EvaluationRecord>().parse(record);
  }

  add(createdAtMs: number): void {
    this.#made += 1;
    // Ids in no order: of calls of one millisecond the later id comes first in the list.
    const id = `ev_${((this.#made * 7919) % 10_007).toString(36)}`;
    this.gateway.store.put({ evaluations: [anEvaluation({ _id: id, workspaceId: WORKSPACE_A, createdAtMs })] });
    this.#listedSinceMs.set(id, this.nowMs);
  }

  addMany(count: number, fromMs: number, everyMs: number): void {
    for (let i = 0; i < count; i += 1) this.add(fromMs - i * everyMs);
  }

  remove(id: string): void {
    this.gateway.store.evaluations.delete(id);
    this.#listedSinceMs.delete(id);
  }

  score(id: string, overallScore: number): void {
    this.gateway.store.evaluations.set(id, { ...this.record(id), overallScore });
  }

  /** Those that were in the list all the time since then. */
  listedSince(timeMs: number): string[] {
    return [...this.#listedSinceMs].filter(([, sinceMs]) => sinceMs <= timeMs).map(([id]) => id);
  }

  async sync(isFull = false): Promise<Result> {
    const done = await this.#example.syncCalls({
      url: this.gateway.publicUrl,
      key: this.key,
      workspaceId: this.workspaceId,
      state: this.state,
      isFull,
      emit: (change: unknown) => this.changes.push(changeSchema.parse(change)),
      log: (line: string) => this.logLines.push(line),
      now: () => this.nowMs,
      sleep: async (ms: number) => {
        this.waits.push(ms);
        this.gateway.clock.advance(ms);
        this.onWait();
        await this.renewed();
      },
    });
    return resultSchema.parse(done);
  }

  /** The score of each call that the consumer has. */
  copy(): Record<string, unknown> {
    const { calls } = stateSchema.parse(JSON.parse(JSON.stringify(this.state)));
    return Object.fromEntries(Object.entries(calls).map(([id, { call }]) => [id, call.score]));
  }

  /** The score of each evaluation that the store has. */
  original(): Record<string, unknown> {
    return Object.fromEntries(this.records.map(({ _id, overallScore }) => [_id, overallScore]));
  }

  idsOf(change: Change['change']): string[] {
    return this.changes.filter((one) => one.change === change).map(({ call }) => call.id);
  }

  /** Resolves once what is renewed behind answers has come to its end. */
  async renewed(): Promise<void> {
    await vi.waitUntil(async () => (await metricOf(this.gateway, 'evalgate_store_calls_in_flight')) === 0, {
      timeout: 10_000,
      interval: 1,
    });
  }

  /** Another consumer reads, and the refresh behind its answer comes to its end. */
  async readByOther(path: string): Promise<string[]> {
    const { json } = await this.gateway.get(path, { key: this.key });
    await this.renewed();
    return z
      .object({ calls: z.array(callSchema) })
      .parse(json)
      .calls.map(({ id }) => id);
  }
}

export function pathOf(page: number, size: number): string {
  return `/v2/calls?workspaceId=${WORKSPACE_A}&page=${page}&pageSize=${size}`;
}
