/** Consumers of every kind, who ask at their own pace, and look at each answer. */
import type { SeededRandom } from '../../support/random.ts';
import type { Failure } from './faults.ts';
import { SCORECARD_ID, type SoakRecord, versionIn } from './records.ts';
import type { SoakWorld } from './world.ts';

export const QUERY_MARK = 'planted-query';
const TICK_MS = 5;
/** No answer may take longer, whatever happens. */
const MAX_MS = 15_000;
const MAX_ETAGS = 500;
/** The store looks at all of its records for each list. */
const LISTED = 3;

/** A key and what its answers may be besides the right ones. */
export interface Consumer {
  readonly token: string;
  readonly isLimited: boolean;
  /** When its key began to be revoked and when that was done; Infinity before. */
  readonly revoking: { beginMs: number; doneMs: number };
}

interface Asked {
  readonly path: string;
  /** The right answer has this record, in this version or a later one. */
  readonly expected: { readonly id: string; readonly leastVersion: number } | null;
  readonly isAbsent: boolean;
}

export interface TrafficOptions {
  readonly random: SeededRandom;
  /** The record of the next request. */
  readonly pickRecord: () => SoakRecord;
  readonly onFailure: (failure: Failure) => void;
  /** Called with the time of each answer from a copy. */
  readonly onHit?: (tookMs: number) => void;
}

export class Traffic {
  readonly consumers: Consumer[] = [];
  requests = 0;
  /** By status. */
  readonly statuses = new Map<number, number>();
  longestMs = 0;
  readonly #world: SoakWorld;
  readonly #options: TrafficOptions;
  /** The workspaces whose lists are read. */
  readonly #workspaces: readonly string[];
  readonly #underWay = new Set<Promise<void>>();
  readonly #etags = new Map<string, string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(world: SoakWorld, options: TrafficOptions) {
    this.#world = world;
    this.#options = options;
    this.#workspaces = [...new Set(world.records.map(({ workspaceId }) => workspaceId))].slice(0, LISTED);
  }

  begin(perSecond: number): void {
    const beganMs = performance.now();
    let sent = 0;
    this.#timer = setInterval(() => {
      const due = ((performance.now() - beganMs) * perSecond) / 1000;
      for (; sent < due; sent += 1) this.#ask();
    }, TICK_MS);
  }

  async end(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await Promise.all(this.#underWay);
  }

  #ask(): void {
    const { random } = this.#options;
    const consumer = random.oneOf(this.consumers);
    const gateway = random.integer(0, this.#world.urls.length - 1);
    const asking = this.#request(gateway, consumer, this.#something()).finally(() => this.#underWay.delete(asking));
    this.#underWay.add(asking);
  }

  #something(): Asked {
    const { random, pickRecord } = this.#options;
    const { id, workspaceId } = pickRecord();
    const listed = random.oneOf(this.#workspaces);
    const report = `/v1/workspaces/${workspaceId}/reports/${id}`;
    const search = `search=${QUERY_MARK}-${random.integer(0, 30)}`;
    const path = random.pick(
      `/v1/workspaces/${listed}/reports?page=${random.integer(1, 3)}&limit=20`,
      `/v1/workspaces/${listed}/reports?${search}`,
      `/v2/calls?pageSize=20&workspaceId=${listed}`,
      `/v2/calls?${search}`,
      report,
      `${report}/scorecard`,
      `${report}/deal-insights`,
      `${report}/transcript`,
      `/v2/calls/${id}`,
      `/v2/calls/${id}/transcript?page=2&pageSize=30`,
      `/v2/calls/${id}/scorecard`,
      `/v2/scorecards/${SCORECARD_ID}/rubric`,
      `/v2/calls/absent_${random.integer(0, 50)}`,
    );
    const isWhole = path === report || path === `/v2/calls/${id}`;
    const expected = isWhole ? { id, leastVersion: this.#world.leastVersion(id) } : null;
    return { path, expected, isAbsent: path.includes('absent') };
  }

  async #request(gateway: number, consumer: Consumer, asked: Asked): Promise<void> {
    const { random, onFailure, onHit } = this.#options;
    const { urls, parts } = this.#world;
    const method = random.next() < 0.03 ? 'HEAD' : 'GET';
    const etag = random.next() < 0.3 ? this.#etags.get(asked.path) : undefined;
    const headers = {
      authorization: `Bearer ${consumer.token}`,
      'accept-encoding': random.pick('identity', 'gzip', 'br', 'gzip, br'),
      ...(etag !== undefined && { 'if-none-match': etag }),
    };
    const [fromMs, sinceMs] = [Date.now(), performance.now()];
    const reply = await send(`${urls[gateway] ?? ''}${asked.path}`, { method, headers });
    const toMs = Date.now();
    this.requests += 1;
    this.longestMs = Math.max(this.longestMs, toMs - fromMs);
    this.statuses.set(reply.status, (this.statuses.get(reply.status) ?? 0) + 1);
    if (reply.status >= 400) parts.secrets.search(`the answer ${reply.status} to ${asked.path}`, reply.text);
    if (/;\s*hit(?:;|$)/.test(reply.cacheStatus)) onHit?.(performance.now() - sinceMs);
    if (reply.status === 200 && reply.etag !== null) this.#remember(asked.path, reply.etag);
    const what = wrong({ reply, asked, method, consumer, fromMs, toMs });
    if (what !== null) onFailure({ gateway, fromMs, toMs, status: reply.status, what });
  }

  #remember(path: string, etag: string): void {
    if (this.#etags.size >= MAX_ETAGS) this.#etags.clear();
    this.#etags.set(path, etag);
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly etag: string | null;
  readonly cacheStatus: string;
}

async function send(url: string, init: RequestInit): Promise<Reply> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(2 * MAX_MS) });
    const { status, headers } = response;
    const cacheStatus = headers.get('cache-status') ?? '';
    return { status, text: await response.text(), etag: headers.get('etag'), cacheStatus };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
    return { status: 0, text: `${String(error)} ${cause}`, etag: null, cacheStatus: '' };
  }
}

interface Judged {
  readonly reply: Reply;
  readonly asked: Asked;
  readonly method: string;
  readonly consumer: Consumer;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The fault of the answer; null if there is none. */
function wrong({ reply, asked, method, consumer, fromMs, toMs }: Judged): string | null {
  const { status, text } = reply;
  const { beginMs, doneMs } = consumer.revoking;
  if (toMs - fromMs > MAX_MS) return `took ${toMs - fromMs} ms`;
  if (status === 403 && toMs >= beginMs) return null;
  if (fromMs > doneMs) return `${status} for a revoked key`;
  if (status === 429) return consumer.isLimited ? null : '429 for a key without limits';
  if (asked.isAbsent ? status !== 404 : status !== 200 && status !== 304) return `${status} for ${asked.path}: ${text}`;
  if (method === 'HEAD' || status !== 200 || asked.expected === null) return null;
  const { id, leastVersion } = asked.expected;
  if (!text.includes(`"${id}"`)) return `not the record of ${asked.path}`;
  const version = versionIn(text, id) ?? -1;
  return version >= leastVersion ? null : `version ${version} of ${asked.path} instead of ${leastVersion}`;
}
