/** What is measured: a server that runs. */
export interface Server {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}
