/** Gateways in front of one store, with keys of three tenants, that are watched for anything that crosses between them. */
import { Agent } from 'node:http';
import type { Reply } from './gateway.ts';
import {
  type Change,
  IDS,
  markerOf,
  type Read,
  type Rights,
  RIGHTS,
  SCORECARD_IDS,
  type Step,
  WORKSPACES,
} from './isolation-steps.ts';
import { putMarkedEvaluation, putMarkedScorecard, shownBy } from './marked-records.ts';
import { type BackendKind, World, type WorldOptions } from './world.ts';

/** Past every error time: nothing that is cached is of use any more. */
const PAST_ALL_MS = 8 * 86_400_000;
const UNLIMITED = 1_000_000_000;
/** By how much each request moves the time on. */
const REQUEST_MS = 25;

/** So many requests are under way at a time, at most. */
const AT_ONCE = 16;
const MAX_LEAKS = 5;

export class IsolationWorld {
  readonly tally = {
    requests: 0,
    /** Answered with 200 or 304. */
    served: 0,
    /** Those of them that came from a cache, fresh or stale. */
    fromCache: 0,
    refused: 0,
    failed: 0,
    changes: 0,
    /** Data shown to the wrong reader: the first few. */
    leaks: [] as string[],
  };
  readonly #world: World;
  readonly #keys: readonly string[];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  readonly #underWay = new Set<Promise<void>>();
  #recover: () => void = () => undefined;
  /** How many more requests the store fails for. */
  #failing = 0;

  private constructor(world: World, keys: readonly string[]) {
    this.#world = world;
    this.#keys = keys;
  }

  static async start(kind: BackendKind, options: WorldOptions = {}): Promise<IsolationWorld> {
    const world = await World.start(kind, options);
    const limits = { perMinute: UNLIMITED, perHour: UNLIMITED };
    return new IsolationWorld(
      world,
      await Promise.all(RIGHTS.map((one) => world.here.issueKey({ ...one, ...limits }))),
    );
  }

  /** Steps in their order, on records as they were at first. Requests go on while the world around them changes. */
  async play(steps: readonly Step[]): Promise<void> {
    for (const [i, id] of IDS.entries()) this.#putEvaluation(id, WORKSPACES[i % 3] ?? '');
    for (const [i, id] of SCORECARD_IDS.entries()) this.#putScorecard(id, WORKSPACES[i % 3] ?? '');
    for (const step of steps) {
      if (step.kind === 'read') await this.#begin(this.#read(step));
      else if (step.kind === 'purge') await this.#begin(this.#purge(step));
      else {
        // Who joins a call of others waits as long as that has taken by the clock, in real time.
        if (step.kind === 'wait') await Promise.all(this.#underWay);
        this.#change(step);
      }
    }
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    this.#recover();
    // So that what follows begins with nothing that is of use.
    this.#world.clock.advance(PAST_ALL_MS);
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    await this.#world.close();
  }

  /** Resolves as soon as another one may begin. */
  async #begin(doing: Promise<void>): Promise<void> {
    const ended = doing.finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
    // A step that fails ends the whole run, where it is waited for.
    ended.catch(() => undefined);
    while (this.#underWay.size >= AT_ONCE) await Promise.race(this.#underWay);
  }

  #change(change: Exclude<Change, { kind: 'purge' }>): void {
    this.tally.changes += 1;
    if (change.kind === 'wait') this.#world.clock.advance(change.ms);
    else if (change.kind === 'move' && change.id.startsWith('sc')) this.#putScorecard(change.id, change.workspaceId);
    else if (change.kind === 'move') this.#putEvaluation(change.id, change.workspaceId);
    else {
      this.#recover();
      this.#recover = this.#world.store.fail(503);
      this.#failing = change.requests;
    }
  }

  async #purge({ gateway, tag, mode }: Extract<Change, { kind: 'purge' }>): Promise<void> {
    this.tally.changes += 1;
    const reply = await this.#world.gateway(gateway).admin('POST', '/api/cache/purge', { tags: [tag], mode });
    if (reply.status !== 200) throw new Error(`${tag} was not purged: ${reply.text}`);
  }

  async #read(asked: Read): Promise<void> {
    const rights = RIGHTS[asked.tenant];
    const key = this.#keys[asked.tenant];
    if (rights === undefined || key === undefined) throw new RangeError(`There is no tenant ${asked.tenant}.`);
    this.#world.clock.advance(REQUEST_MS);
    this.#failing -= 1;
    if (this.#failing < 0) this.#recover();
    const headers = asked.etag === '' ? {} : { 'if-none-match': asked.etag };
    const reply = await this.#world.gateway(asked.gateway).get(asked.path, { key, headers, agent: this.#agent });
    this.#count(reply);
    if (isBreach(reply, rights, asked) && this.tally.leaks.length < MAX_LEAKS) {
      const holder = `${rights.scopes.join()} in ${rights.workspaceIds.join()}`;
      this.tally.leaks.push(`${asked.path} to ${holder}: ${reply.status} ${reply.text}`);
    }
  }

  #count({ status, headers }: Reply): void {
    this.tally.requests += 1;
    if (status === 200 || status === 304) {
      this.tally.served += 1;
      if (/; hit/.test(String(headers['cache-status']))) this.tally.fromCache += 1;
    } else if (status < 500) this.tally.refused += 1;
    else this.tally.failed += 1;
  }

  /** It may have been in another workspace before. */
  #putEvaluation(id: string, workspaceId: string): void {
    putMarkedEvaluation(this.#world.store, { id, workspaceId, scorecardId: 'sc_0', marker: markerOf(workspaceId) });
  }

  #putScorecard(id: string, workspaceId: string): void {
    putMarkedScorecard(this.#world.store, { id, workspaceId, marker: markerOf(workspaceId) });
  }
}

/** Whether the answer shows what the key may not see, or is anything but 403 if the key may ask for nothing. */
function isBreach(reply: Reply, rights: Rights, { path, scope, shownIds, pathWorkspaceId }: Read): boolean {
  const hasScope = rights.scopes.includes(scope);
  const isAllowed = (id: string): boolean => hasScope && rights.workspaceIds.includes(id) && shownIds.includes(id);
  const shown = shownBy(path, reply);
  if (WORKSPACES.some((id) => !isAllowed(id) && shown.includes(markerOf(id)))) return true;
  const mayAsk = hasScope && (pathWorkspaceId === null || rights.workspaceIds.includes(pathWorkspaceId));
  return !mayAsk && reply.status !== 403;
}
