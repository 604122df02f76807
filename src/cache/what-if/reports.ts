/** What the what-if models of a fleet have learned: each process leaves its word for the others. */
import type { Timers } from '../../timers.ts';
import type { Board } from './ports.ts';
import { type WhatIfReport, whatIfReportSchema } from './feed.ts';

export interface ReportsOptions {
  readonly board: Board;
  /** This process. */
  readonly self: string;
  /** The processes in front of the same store, this one among them. */
  readonly peers: () => readonly string[];
  /** What this process has to say. */
  readonly report: () => WhatIfReport;
  readonly timers: Timers;
  /** Told once of each process whose word can't be read. Must not throw. */
  readonly onBroken?: ((what: string) => void) | undefined;
}

const PUBLISH_EVERY_MS = 1000;
/** What has not changed is kept from going stale all the same. */
const RENEW_EVERY_MS = 5000;
const KEPT_FOR_MS = 15_000;

export class Reports {
  readonly #options: ReportsOptions;
  readonly #broken = new Set<string>();
  #published = '';
  #sincePublishedMs = 0;
  #cancel: () => void = () => undefined;

  constructor(options: ReportsOptions) {
    this.#options = options;
    this.#schedule();
  }

  /** Of all processes that can be heard. Never rejects: where nobody is heard this process speaks for itself. */
  async all(): Promise<readonly WhatIfReport[]> {
    const { peers, self, report, board } = this.#options;
    const others = peers().filter((id) => id !== self);
    if (others.length === 0 || !board.isUp()) return [report()];
    const texts = await this.#ask(others);
    return [report(), ...others.flatMap((id, index) => this.#read(id, texts[index] ?? null))];
  }

  close(): void {
    this.#cancel();
    const { board } = this.#options;
    if (board.isUp()) board.clear().catch(() => undefined);
  }

  #schedule(): void {
    this.#cancel = this.#options.timers.after(PUBLISH_EVERY_MS, () => {
      this.#publish();
      this.#schedule();
    });
  }

  #publish(): void {
    const { board, report } = this.#options;
    this.#sincePublishedMs += PUBLISH_EVERY_MS;
    if (!board.isUp()) return;
    const said = report();
    // When it was said is no news.
    const news = JSON.stringify({ ...said, snapshot: { ...said.snapshot, atMs: 0 } });
    if (news === this.#published && this.#sincePublishedMs < RENEW_EVERY_MS) return;
    this.#published = news;
    this.#sincePublishedMs = 0;
    board.post(JSON.stringify(said), KEPT_FOR_MS).catch(() => (this.#published = ''));
  }

  async #ask(ids: readonly string[]): Promise<readonly (string | null)[]> {
    try {
      return await this.#options.board.read(ids);
    } catch {
      return [];
    }
  }

  #read(id: string, text: string | null): WhatIfReport[] {
    if (text === null) return [];
    try {
      return [whatIfReportSchema.parse(JSON.parse(text))];
    } catch {
      if (!this.#broken.has(id)) this.#options.onBroken?.('what-if curves of another process');
      this.#broken.add(id);
      return [];
    }
  }
}
