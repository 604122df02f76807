/** K7, K7a: whatever happens, who probes for records of others learns nothing, and takes nothing from their owner. */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { uncountedHeaders } from '../http/common/headers.ts';
import { BACKENDS, World } from '../support/world.ts';
import { cases } from '../support/cases.ts';
import { forTest } from '../support/opened.ts';
import type { Reply } from '../support/gateway.ts';
import { anEvaluation } from '../support/records.ts';

/**
 * Time goes by in these only, so that it never stands between 13.5 s and 15 s after a probe, when each negative entry
 * expires at a time of its own. One is longer than the second for which a failure is shared by all who ask.
 */
const TICK_MS = 6600;
const RUNS = { memory: 20, redis: 4 } as const;

type Action =
  | { readonly do: 'probe'; readonly as: number; readonly gateway: number }
  | { readonly do: 'own'; readonly gateway: number }
  | { readonly do: 'pass'; readonly ticks: number }
  | { readonly do: 'fail' | 'recover' | 'change' }
  | { readonly do: 'purge'; readonly what: string; readonly mode: 'soft' | 'hard' };

const gateway = fc.nat({ max: 1 });
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('probe' as const), as: fc.nat({ max: 2 }), gateway }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('own' as const), gateway }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ticks: fc.constantFrom(1, 3, 60, 760) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('fail', 'recover', 'change') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('purge' as const),
      what: fc.constantFrom('all', 'class:evaluation', 'class:notFound', 'workspace:owner', 'workspace:prober', 'ids'),
      mode: fc.constantFrom('soft', 'hard'),
    }),
  },
);

class Probing {
  readonly faults: string[] = [];
  readonly #world: World;
  readonly #owner = randomUUID();
  readonly #probers = [randomUUID(), randomUUID()] as const;
  /** Ids: a record of the owner, a malformed one of the owner, none. */
  readonly #ids = { foreign: `ev_${randomUUID()}`, broken: `ev_${randomUUID()}`, madeUp: `ev_${randomUUID()}` };
  #keys: readonly string[] = [];
  #ownKey = '';
  #revision = 0;
  #recovery: (() => void) | null = null;

  constructor(world: World) {
    this.#world = world;
  }

  async start(): Promise<void> {
    const [one, other] = this.#probers;
    const issue = (workspaceIds: readonly string[]) =>
      this.#world.here.issueKey({ workspaceIds, perMinute: 1_000_000, perHour: 1_000_000 });
    this.#keys = [await issue([one]), await issue([other]), await issue([one, other])];
    this.#ownKey = await issue([this.#owner]);
    this.#change();
  }

  async play(act: Action): Promise<void> {
    const { clock } = this.#world;
    if (act.do === 'probe') await this.#probe(act);
    else if (act.do === 'own') await this.#readOwn(act.gateway);
    else if (act.do === 'change') this.#change();
    else if (act.do === 'pass') clock.advance(act.ticks * TICK_MS);
    else if (act.do === 'purge') await this.#purge(act);
    else {
      clock.advance(TICK_MS);
      // Redis remembers a failure by its own clock, which the test does not move: there the store never fails.
      if (act.do === 'fail' && this.#world.kind === 'memory') this.#recovery ??= this.#world.store.fail(503);
      else this.close();
    }
  }

  close(): void {
    this.#recovery?.();
    this.#recovery = null;
  }

  async #probe({ as, gateway: place }: Extract<Action, { do: 'probe' }>): Promise<void> {
    const madeUp = await this.#look(this.#ids.madeUp, as, place);
    for (const id of [this.#ids.foreign, this.#ids.broken]) {
      const seen = await this.#look(id, as, place);
      if (seen === madeUp) continue;
      this.faults.push(`${id === this.#ids.foreign ? 'foreign' : 'broken'}: ${seen}; made up: ${madeUp}`);
    }
  }

  /** All that can be told of one probe: the answer, and what it cost the store. */
  async #look(id: string, as: number, place: number): Promise<string> {
    const before = this.#world.store.calls();
    const reply = await this.#get(id, this.#keys[as] ?? '', place);
    const calls = this.#world.store.calls() - before;
    return JSON.stringify([reply.status, reply.text, uncountedHeaders(reply), calls]);
  }

  /** Is shown a record of its own, or the store's failure: never what a probe has left. */
  async #readOwn(place: number): Promise<void> {
    const { status, text } = await this.#get(this.#ids.foreign, this.#ownKey, place);
    const isOwn = status === 200 && text.includes(`"revision `);
    if (!isOwn && !(status === 500 && this.#recovery !== null)) this.faults.push(`the owner: ${status} ${text}`);
    // The refresh behind it is over before anything else is begun.
    await this.#world.eventually(async () => {
      for (const each of this.#world.gateways) {
        const { flight } = await this.#world.explain(`/v2/calls/${this.#ids.foreign}`, each);
        if (flight.since !== null || flight.leaseLeftMs !== null) throw new Error('a refresh is under way');
      }
    });
    if (this.#recovery !== null) this.#world.clock.advance(TICK_MS);
  }

  #get(id: string, key: string, place: number): Promise<Reply> {
    const { gateways, here } = this.#world;
    return (gateways[place % gateways.length] ?? here).get(`/v2/calls/${id}`, { key });
  }

  #change(): void {
    this.#revision += 1;
    const record = anEvaluation({ workspaceId: this.#owner, title: `revision ${this.#revision}` });
    const { evaluations } = this.#world.store;
    evaluations.set(this.#ids.foreign, { ...record, _id: this.#ids.foreign });
    evaluations.set(this.#ids.broken, { ...record, _id: this.#ids.broken, title: 7 });
  }

  async #purge({ what, mode }: Extract<Action, { do: 'purge' }>): Promise<void> {
    const { clock } = this.#world;
    clock.advance(TICK_MS);
    const byName: Readonly<Record<string, readonly string[]>> = {
      'workspace:owner': [`workspace:${this.#owner}`],
      'workspace:prober': [`workspace:${this.#probers[0]}`],
      ids: Object.values(this.#ids).map((id) => `evaluation:${id}`),
    };
    await this.#world.purge(byName[what] ?? [what], { mode });
  }
}

describe.each(BACKENDS)('%s', (kind) => {
  test('K7, K7a: a foreign, a malformed foreign and a made-up id can not be told apart, and their owner is served', async () => {
    const world = await forTest(World.start(kind));
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 25 }), async (actions) => {
        const probing = new Probing(world);
        await probing.start();
        for (const each of actions) await probing.play(each);
        probing.close();
        fc.pre(!world.hasLostRedis());
        expect(probing.faults).toEqual([]);
      }),
      { numRuns: cases(RUNS[kind]), endOnFailure: kind === 'redis' },
    );
  }, 120_000);
});
