/** Prism as a validating proxy in front of the gateway: every operation, by GET and HEAD, with valid and invalid input. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import * as fc from 'fast-check';
import { z } from 'zod';
import { type DocumentedRequest, type Known, routesOf } from '../support/document-requests.ts';
import { startPrism } from './prism-proxy.ts';
import type { Check, Operation, World } from './world.ts';

const RANDOM_REQUESTS = 100;
const SEED = 1;
const AT_ONCE = 8;
const MAX_FAULTS = 5;
/** Characters. */
const CURSOR = 'after';
const MAX_VIOLATIONS = 400;
const NO_UUID = '00000000-0000-4000-8000-000000000000';
const NOT_THERE = { reportId: 'ev_none', callId: 'ev_none', scorecardId: NO_UUID };
const UNREAD = { reportId: 'ev_unread', callId: 'ev_unread', scorecardId: NO_UUID.replace(/0$/, '1') };
/** Documented statuses that no request of these causes. Prism itself answers methods other than GET and HEAD. */
const NEVER_SEEN: Readonly<Record<string, readonly string[]>> = {
  '*': ['405'],
  // Keys are read from memory here, which does not fail; v1 ignores unknown parameters.
  getWorkspaceKey: ['400', '500'],
  getCallsKey: ['500'],
};

type Method = 'GET' | 'HEAD';
interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const callsSchema = z.object({ calls: z.array(z.object({ id: z.string(), scorecard_id: z.string().nullable() })) });

/** One check per operation and method: no answer departs from the document, and every status is seen that can be. */
export async function checkWithPrism(world: World): Promise<readonly Check[]> {
  const { gateway, document, target } = world;
  const workspaceIds = [target.workspaceId];
  const limited = await gateway.issueKey({ workspaceIds, perMinute: 1 });
  const foreign = await gateway.issueKey({ workspaceIds: [NO_UUID] });
  const revoked = await gateway.issue({ workspaceIds });
  await gateway.administer('DELETE', `/api/keys/${revoked.keyId}`);
  const routes = routesOf(document, await knownIds(world));
  const prism = await startPrism(document, gateway.publicUrl);
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const trials: Trial[] = [];
  try {
    for (const [template, { get: operation }] of Object.entries(document.paths)) {
      const route = routes.find(({ operationId }) => operationId === operation.operationId);
      if (route === undefined) throw new Error(`There are no requests to ${operation.operationId}.`);
      for (const method of ['GET', 'HEAD'] as const) {
        const key = await gateway.issueKey({ workspaceIds });
        const trial = new Trial({ url: prism.url, agent, key, ids: { ...target }, template, operation, method });
        await trial.readKnown();
        for (const other of [null, 'evg_unknown', revoked.token, foreign, limited, limited]) {
          await trial.readWith(other);
        }
        await trial.readAll(fc.sample(route.requests, { numRuns: RANDOM_REQUESTS, seed: SEED }));
        trials.push(trial);
      }
    }
    await gateway.administer('PUT', '/api/cache/maintenance', { for: '10m' });
    for (const trial of trials) await trial.readWithoutStore();
    return trials.map((trial) => trial.check());
  } finally {
    agent.destroy();
    await prism.close();
  }
}

/** Records of the sample store, so that random requests find some. */
async function knownIds({ gateway, target }: World): Promise<Known> {
  const response = await gateway.get('/v2/calls?pageSize=50', target.key);
  const { calls } = callsSchema.parse(await response.json());
  const ids = [target.callId, target.reportId, ...calls.map(({ id }) => id)];
  const scorecardId = calls.flatMap(({ scorecard_id: id }) => (id === null ? [] : [id]));
  return { workspaceId: [target.workspaceId], reportId: ids, callId: ids, scorecardId };
}

interface TrialOptions {
  /** Where Prism listens. */
  readonly url: string;
  readonly agent: Agent;
  readonly key: string;
  /** By the names of path parameters. */
  readonly ids: Readonly<Record<string, string>>;
  readonly template: string;
  readonly operation: Operation;
  readonly method: Method;
}

/** Requests to one operation by one method, and the faults that they found. */
class Trial {
  readonly #options: TrialOptions;
  readonly #queryNames: ReadonlySet<string>;
  readonly #statuses = new Map<number, number>();
  readonly #faults: string[] = [];

  constructor(options: TrialOptions) {
    this.#options = options;
    const { parameters } = options.operation;
    const names = parameters.flatMap((one) => ('name' in one && one.in === 'query' ? [one.name] : []));
    this.#queryNames = new Set(names);
  }

  /** The record or list itself, again with its ETag, and a record that is not there. */
  async readKnown(): Promise<void> {
    const { etag } = (await this.#send({ path: this.#path(), headers: {} })).headers;
    if (etag !== undefined) await this.#send({ path: this.#path(), headers: { 'if-none-match': etag } });
    await this.#send({ path: this.#path(NOT_THERE), headers: {} });
  }

  /** With another key, or none. */
  async readWith(key: string | null): Promise<void> {
    await this.#send({ path: this.#path(), headers: {} }, key);
  }

  /** Some at a time. */
  async readAll(requests: readonly DocumentedRequest[]): Promise<void> {
    const left = [...requests];
    const work = async (): Promise<void> => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) await this.#send(next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  /** A list or record that nobody has read, while the store may not be called. */
  async readWithoutStore(): Promise<void> {
    const query = this.#queryNames.has('search') ? '?search=unread' : '';
    await this.#send({ path: this.#path(UNREAD) + query, headers: {} });
  }

  check(): Check {
    const { operation, method } = this.#options;
    const excused = [...(NEVER_SEEN['*'] ?? []), ...(NEVER_SEEN[operation.operationId] ?? [])];
    const documented = Object.keys(operation.responses).filter((status) => !excused.includes(status));
    const unseen = documented.filter((status) => !this.#statuses.has(Number(status)));
    const statuses = [...this.#statuses].toSorted(([one], [other]) => one - other);
    return {
      name: `Prism, ${method} ${operation.operationId}`,
      measured: statuses.map(([status, times]) => `${times} × ${status}`).join(', '),
      faults: [...this.#faults.slice(0, MAX_FAULTS), ...unseen.map((status) => `${status} was never seen`)],
    };
  }

  #path(ids: Readonly<Record<string, string>> = {}): string {
    const values = { ...this.#options.ids, ...ids };
    return this.#options.template.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
  }

  async #send(sent: DocumentedRequest, key: string | null = this.#options.key): Promise<Answer> {
    const { url, agent, method, operation } = this.#options;
    const headers = { ...(key !== null && { authorization: `Bearer ${key}` }), ...sent.headers };
    const answer = await answerTo(url, { agent, method, path: sent.path, headers });
    const { status, text } = answer;
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    const fault = (what: string): void => {
      this.#faults.push(`${sent.path} ${JSON.stringify(sent.headers)}: ${status}: ${what}`);
    };
    if (answer.headers['content-type'] === 'application/problem+json') fault(`Prism itself answered: ${text}`);
    else if (operation.responses[status] === undefined) fault('this status is not documented');
    // A list of the request's and the answer's violations. Prism cuts a long one off, so that it is no JSON.
    const violations = String(answer.headers['sl-violations'] ?? '');
    if (violations.includes('"location":["response"')) fault(violations.slice(0, MAX_VIOLATIONS));
    // OpenAPI cannot say that unknown parameters are refused, so Prism does not know; it takes an empty one for none; and a
    // cursor is what the gateway gave, for nobody else to read.
    const query = new URL(sent.path, url).searchParams;
    const isJudged = [...query].every(([name, value]) => this.#queryNames.has(name) && value !== '' && name !== CURSOR);
    if (status === 400 && violations === '' && isJudged) fault(`by the document the request is valid: ${text}`);
    return answer;
  }
}

interface RequestOptions {
  readonly agent: Agent;
  readonly method: Method;
  readonly path: string;
  readonly headers: Record<string, string>;
}

function answerTo(url: string, options: RequestOptions): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, ...options }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, text: Buffer.concat(chunks).toString() });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}
