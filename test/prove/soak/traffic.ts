/** Consumers of every kind, who ask at their own pace, and look at each answer. */
import type { SeededRandom } from '../../support/random.ts';
import type { Failure } from './faults.ts';
import type { Secrets } from './secrets.ts';
import { SCORECARD_ID, type SoakRecord, WORKSPACES } from './records.ts';

export const QUERY_MARK = 'planted-query';
const TICK_MS = 5;
/** No answer may take longer, whatever happens. */
const MAX_MS = 15_000;
const MAX_ETAGS = 500;

/** A key and what its answers may be besides the right ones. */
export interface Consumer {
  readonly token: string;
  readonly isLimited: boolean;
  /** When its key began to be revoked and when that was done; Infinity before. */
  readonly revoking: { beginMs: number; doneMs: number };
}

interface Asked {
  readonly path: string;
  /** Stands in the right answer. */
  readonly expected: string | null;
  readonly isAbsent: boolean;
}

export interface TrafficOptions {
  readonly urls: readonly string[];
  readonly records: readonly SoakRecord[];
  readonly random: SeededRandom;
  readonly secrets: Secrets;
  readonly onFailure: (failure: Failure) => void;
}

export class Traffic {
  readonly consumers: Consumer[] = [];
  requests = 0;
  /** By status. */
  readonly statuses = new Map<number, number>();
  longestMs = 0;
  readonly #options: TrafficOptions;
  readonly #underWay = new Set<Promise<void>>();
  readonly #etags = new Map<string, string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: TrafficOptions) {
    this.#options = options;
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
    const { random, urls } = this.#options;
    const consumer = this.consumers[random.integer(0, this.consumers.length - 1)];
    const gateway = random.integer(0, urls.length - 1);
    if (consumer === undefined) throw new Error('There are no consumers.');
    const asking = this.#request(gateway, consumer, this.#something()).finally(() => this.#underWay.delete(asking));
    this.#underWay.add(asking);
  }

  #something(): Asked {
    const { random, records } = this.#options;
    const record = records[random.integer(0, records.length - 1)];
    if (record === undefined) throw new Error('There are no records.');
    const { id, workspaceId } = record;
    const report = `/v1/workspaces/${workspaceId}/reports/${id}`;
    const search = `search=${QUERY_MARK}-${random.integer(0, 30)}`;
    const path = random.pick(
      `/v1/workspaces/${workspaceId}/reports?page=${random.integer(1, 3)}&limit=20`,
      `/v1/workspaces/${workspaceId}/reports?${search}`,
      `/v2/calls?pageSize=20&workspaceId=${random.pick(WORKSPACES[0] ?? '', ...WORKSPACES.slice(1))}`,
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
    return { path, expected: isWhole ? id : null, isAbsent: path.includes('absent') };
  }

  async #request(gateway: number, consumer: Consumer, asked: Asked): Promise<void> {
    const { random, urls, secrets, onFailure } = this.#options;
    const method = random.next() < 0.03 ? 'HEAD' : 'GET';
    const etag = random.next() < 0.3 ? this.#etags.get(asked.path) : undefined;
    const headers = {
      authorization: `Bearer ${consumer.token}`,
      'accept-encoding': random.pick('identity', 'gzip', 'br', 'gzip, br'),
      ...(etag !== undefined && { 'if-none-match': etag }),
    };
    const fromMs = Date.now();
    const reply = await send(`${urls[gateway] ?? ''}${asked.path}`, { method, headers });
    const toMs = Date.now();
    this.requests += 1;
    this.longestMs = Math.max(this.longestMs, toMs - fromMs);
    this.statuses.set(reply.status, (this.statuses.get(reply.status) ?? 0) + 1);
    if (reply.status >= 400) secrets.search(`the answer ${reply.status} to ${asked.path}`, reply.text);
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
}

async function send(url: string, init: RequestInit): Promise<Reply> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(2 * MAX_MS) });
    return { status: response.status, text: await response.text(), etag: response.headers.get('etag') };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
    return { status: 0, text: `${String(error)} ${cause}`, etag: null };
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
  const isBare = method === 'HEAD' || status !== 200 || asked.expected === null;
  return isBare || text.includes(`"${asked.expected}"`) ? null : `not the record of ${asked.path}`;
}
