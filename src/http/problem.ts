/** A failed request: what the consumer may read, what only the log may hold, and nothing of how it is rendered. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  /** Shown to anyone who asks: no ids, no addresses, no causes. */
  readonly publicMessage: string;
  readonly headers: Readonly<Record<string, string>>;

  /** `privateMessage` goes to the log only; without one the public message serves. */
  constructor(
    status: number,
    publicMessage: string,
    details: { headers?: Readonly<Record<string, string>>; privateMessage?: string; cause?: unknown } = {},
  ) {
    super(details.privateMessage ?? publicMessage, { cause: details.cause });
    this.status = status;
    this.publicMessage = publicMessage;
    this.headers = details.headers ?? {};
  }
}
