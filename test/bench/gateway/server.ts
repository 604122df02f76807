/** A running server, to be measured. */
export interface Server {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** How many of its processes serve requests; 1 unless it is given. Each has to become warm. */
  readonly processes?: number;
  stop(): Promise<void>;
}
