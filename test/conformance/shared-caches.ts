/**
 * Shared caches of others in front of the gateway: no key ever gets what another one was answered, and what passes through
 * one is what the gateway answers, with its 304 and its codings.
 */
import { once } from 'node:events';
import { get, IncomingMessage, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import { createSampleData } from '../../src/sample/data.ts';
import { SHARED_CACHES, startSharedCache } from './shared-cache-programs.ts';
import type { Check, World } from './world.ts';

interface Answer {
  readonly status: number;
  readonly body: Buffer;
  readonly headers: IncomingHttpHeaders;
}

/** The headers that must be as the gateway sends them. A cache may unpack a body, and join and space what `Vary` lists. */
const TOLD: Readonly<Record<string, (headers: IncomingHttpHeaders) => string>> = {
  etag: ({ etag = 'missing' }) => etag.replace(/^W\//, '').replace(/-(?:gzip|br|zstd)"$/, '"'),
  'content-encoding': (headers) => headers['content-encoding'] ?? 'none',
  vary: ({ vary = 'missing' }) => vary.toLowerCase().replaceAll(' ', ''),
};

/** Who reads: keys of two different workspaces, one of both, one that is no key, and nobody. */
type Keys = Readonly<Record<'one' | 'other' | 'both' | 'wrong', string> & Record<'nobody', null>>;
const READERS = ['one', 'other', 'both', 'wrong', 'nobody'] as const;

export async function checkSharedCaches({ gateway, target }: World): Promise<readonly Check[]> {
  const { workspaceIds } = createSampleData({ seed: 1, evaluations: 1 });
  const foreign = workspaceIds.find((id) => id !== target.workspaceId) ?? '';
  const keys: Keys = {
    one: await gateway.issueKey({ workspaceIds: [target.workspaceId] }),
    other: await gateway.issueKey({ workspaceIds: [foreign] }),
    both: await gateway.issueKey({ workspaceIds: [target.workspaceId, foreign] }),
    wrong: `evg_${'A'.repeat(43)}`,
    nobody: null,
  };
  const checks: Check[] = [];
  for (const [name, program] of Object.entries(SHARED_CACHES)) {
    for (const manner of program.manners) {
      const cache = await startSharedCache(program, target.baseUrl, manner);
      if (cache === null) {
        process.stderr.write(`SKIPPED: ${name} is not installed, and its packages cannot be had\n`);
        break;
      }
      try {
        const through = new Through(cache.url, keys, target.baseUrl);
        const { faults, sent } = await through.check(target.callId);
        const arrived = sent - through.answeredByCache;
        const measured = `${sent} requests, ${arrived} of them reached the gateway; ${through.notModified} of 3 ETags brought a 304`;
        const isIdle = manner === 'made to keep private answers' && through.answeredByCache === 0;
        checks.push({
          name: `${name}, ${manner}`,
          measured,
          faults: isIdle ? [...faults, 'it kept nothing, so this shows nothing'] : faults,
        });
      } finally {
        await cache.stop();
      }
    }
  }
  return checks;
}

/** The same requests through the cache and to the gateway itself, whose answers are the right ones. */
class Through {
  /** The gateway gives each request an id: an answer with one that was seen before came from the cache. */
  answeredByCache = 0;
  notModified = 0;
  readonly #seen = new Set<string>();
  readonly #faults: string[] = [];
  readonly #cacheUrl: string;
  readonly #gatewayUrl: string;
  readonly #keys: Keys;
  #sent = 0;

  constructor(cacheUrl: string, keys: Keys, gatewayUrl: string) {
    this.#cacheUrl = cacheUrl;
    this.#gatewayUrl = gatewayUrl;
    this.#keys = keys;
  }

  async check(callId: string): Promise<{ readonly faults: readonly string[]; readonly sent: number }> {
    for (const path of [`/v2/calls/${callId}`, '/v2/calls?pageSize=3', `/v2/calls/${callId}/transcript`]) {
      // Twice around, so that each reader comes after each other one.
      for (const who of [...READERS, ...READERS]) await this.#compare(path, who);
      for (const coding of ['gzip', 'identity', 'gzip']) {
        await this.#compare(path, 'both', { 'accept-encoding': coding });
      }
      await this.#revalidate(path);
    }
    return { faults: this.#faults, sent: this.#sent };
  }

  async #compare(path: string, who: (typeof READERS)[number], headers: Readonly<Record<string, string>> = {}) {
    const right = await read(this.#gatewayUrl + path, this.#keys[who], headers);
    const found = await this.#ask(path, who, headers);
    const asked = `${path} by ${who}${Object.values(headers).join()}`;
    if (found.status !== right.status) this.#faults.push(`${asked}: ${found.status}, not ${right.status}`);
    // The text of a refusal has the id of its request.
    if (right.status === 200 && !found.body.equals(right.body)) this.#faults.push(`${asked}: another body`);
    for (const [name, told] of Object.entries(TOLD)) {
      if (told(found.headers) === told(right.headers)) continue;
      this.#faults.push(`${asked}: ${name} is ${told(found.headers)}, not ${told(right.headers)}`);
    }
  }

  /**
   * The own ETag brings a 304 without a body, or from a cache that passes none on, such as nginx, the own answer; that of
   * another one's answer brings the own answer.
   */
  async #revalidate(path: string): Promise<void> {
    const [own, others] = [await this.#ask(path, 'one'), await this.#ask(path, 'both')];
    const same = await this.#ask(path, 'one', { 'if-none-match': own.headers.etag ?? '' });
    if (same.status === 304 && same.body.length === 0) this.notModified += 1;
    else if (same.status !== 200 || !same.body.equals(own.body)) {
      this.#faults.push(`${path} with its ETag: ${same.status} and ${same.body.length} bytes`);
    }
    if (others.headers.etag === own.headers.etag) return;
    const different = await this.#ask(path, 'one', { 'if-none-match': others.headers.etag ?? '' });
    if (different.status !== 200 || !different.body.equals(own.body)) {
      this.#faults.push(`${path} with another ETag: ${different.status}, not 200 with its own body`);
    }
  }

  async #ask(
    path: string,
    who: (typeof READERS)[number],
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    this.#sent += 1;
    const answer = await read(this.#cacheUrl + path, this.#keys[who], headers);
    const id = String(answer.headers['x-request-id']);
    if (this.#seen.has(id)) this.answeredByCache += 1;
    this.#seen.add(id);
    return answer;
  }
}

/** As it comes: `fetch` would unpack the body and keep a cache's headers to itself. */
async function read(url: string, key: string | null, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const authorization = key === null ? {} : { authorization: `Bearer ${key}` };
  const request = get(url, { headers: { ...authorization, ...headers } });
  const [response] = z.tuple([z.instanceof(IncomingMessage)]).parse(await once(request, 'response'));
  return { status: response.statusCode ?? 0, body: await buffer(response), headers: response.headers };
}
