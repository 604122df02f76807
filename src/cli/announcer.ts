/**
 * The sample store's side of announcements, as docs/store-interface.md asks for it: one call at a time with all changes that
 * wait, signed or with a token, and sent again with the same id until it is taken.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_CHANGES } from '../changes/announcement.ts';
import { sign } from '../changes/signature.ts';
import { ROUTES } from '../operations/api.ts';
import { directFetch, textOf } from './direct-fetch.ts';

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 10_000;
const TIMEOUT_MS = 5000;

export interface AnnouncerOptions {
  /** The address of an admin listener. */
  readonly url: string;
  /** Null without. The secret is used if there are both. */
  readonly secret: string | null;
  readonly token: string | null;
  /** Called for what another try cannot mend; the changes are dropped. */
  readonly onRefused: (status: number, text: string) => void;
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  #waiting: object[] = [];
  #isSending = false;
  #isClosed = false;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  announce(change: object): void {
    this.#waiting.push(change);
    if (!this.#isSending) void this.#sendAll();
  }

  close(): void {
    this.#isClosed = true;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0 && !this.#isClosed) {
      const changes = this.#waiting.slice(0, MAX_CHANGES);
      this.#waiting = this.#waiting.slice(MAX_CHANGES);
      await this.#untilTaken(JSON.stringify({ changes }));
    }
    this.#isSending = false;
  }

  async #untilTaken(body: string): Promise<void> {
    const id = `msg_${randomUUID()}`;
    for (let delayMs = FIRST_DELAY_MS; !this.#isClosed; delayMs = Math.min(LONGEST_DELAY_MS, 2 * delayMs)) {
      const response = await this.#send(id, body).catch(() => null);
      if (response?.status === 200) return;
      if (response !== null && response.status < 500) {
        this.#options.onRefused(response.status, response.text);
        return;
      }
      await sleep(delayMs, undefined, { ref: false });
    }
  }

  async #send(id: string, body: string): Promise<{ readonly status: number; readonly text: string }> {
    const { url, secret, token } = this.#options;
    const { method, path } = ROUTES.announceChanges;
    const signature = secret === null ? {} : sign(secret, id, new Date(), body);
    const authorization = token === null || secret !== null ? {} : { authorization: `Bearer ${token}` };
    const response = await directFetch(`${url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'webhook-id': id, ...signature, ...authorization },
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status: response.status, text: await textOf(response) };
  }
}
