/**
 * Prints each call of a key as a line of JSON, or the turns of one call's transcript. Node.js 24 or newer, nothing else.
 *
 *     export EVALGATE_URL=http://127.0.0.1:8080 EVALGATE_API_KEY=evg_...
 *     node read-calls.ts             all calls, newest first
 *     node read-calls.ts CALL_ID     the transcript of one call
 */
import { setTimeout as sleep } from 'node:timers/promises';

const { EVALGATE_URL = 'http://127.0.0.1:8080', EVALGATE_API_KEY } = process.env;
if (!EVALGATE_API_KEY) throw new Error('EVALGATE_API_KEY is not set: export the API key.');
const URL_OF_API = EVALGATE_URL.replace(/\/+$/, '');
const MAX_TRIES = 5;

/** A page of calls has `calls`, one of a transcript `transcript`. */
interface Page {
  readonly calls: readonly { readonly id: string; readonly name: string }[];
  readonly transcript: { readonly segments: readonly { readonly index: number; readonly text: string }[] };
}

/** The body and the address of the next page, if there is one. Waits as long as the answer says. */
async function get(url: string): Promise<{ readonly page: Page; readonly next: string | undefined }> {
  for (let tries = 1; ;) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${EVALGATE_API_KEY}` } });
    const { status, headers } = response;
    if (status === 200) {
      const next = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
      return { page: JSON.parse(await response.text()), next: next && new URL(next, url).href };
    }
    // Only an answer with Retry-After can go better: a damaged record (record_malformed) has none.
    const wait = headers.get('retry-after');
    if (wait === null || tries === MAX_TRIES) {
      const reason = `${status} ${headers.get('x-error-code')}, request ${headers.get('x-request-id')}`;
      throw new Error(`${reason}: ${await response.text()}`);
    }
    if (status !== 429) tries += 1;
    await sleep(Number(wait) * 1000);
  }
}

async function* pages(first: string): AsyncGenerator<Page> {
  let url: string | undefined = first;
  while (url !== undefined) {
    const { page, next } = await get(url);
    yield page;
    url = next;
  }
}

/** The turns of a transcript. One that is cut goes on with the same index on the next page. */
async function turnsOf(callId: string): Promise<readonly string[]> {
  const turns: string[] = [];
  for await (const { transcript } of pages(`${URL_OF_API}/v2/calls/${callId}/transcript?pageSize=200`)) {
    for (const { index, text } of transcript.segments) turns[index] = (turns[index] ?? '') + text;
  }
  return turns;
}

// The reader has enough (`| head`).
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1));

const [, , callId] = process.argv;
if (callId === undefined) {
  for await (const { calls } of pages(`${URL_OF_API}/v2/calls?after=&pageSize=100`)) {
    for (const call of calls) console.log(JSON.stringify(call));
  }
} else {
  for (const turn of await turnsOf(callId)) console.log(turn);
}
