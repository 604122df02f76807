/** What is wrong with a configuration: every fault at once, each as the person who wrote it can find it. */

export interface ConfigFault {
  /** The environment variable, or the member's path and its file: `server.port (my.yaml)`. */
  readonly name: string;
  /** The value as it was given, ready to print; never a secret's. Null where nothing was given. */
  readonly given: string | null;
  /** What exactly is wrong, where there is more to say than that the value is not an allowed one. */
  readonly problem: string | null;
  /** What is allowed, or what to do. */
  readonly allowed: string;
}

/** The configuration cannot be used. `message` lists all faults and may be shown to the operator as it is. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly ConfigFault[];

  constructor(faults: readonly ConfigFault[]) {
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
    super([`The configuration has ${count}:`, ...faults.map((fault) => `  ${formatFault(fault)}`)].join('\n'));
    this.faults = faults;
  }
}

function formatFault({ name, given, problem, allowed }: ConfigFault): string {
  const parts = [given === null ? null : `given ${given}`, problem, `allowed: ${allowed}`];
  return `${name}: ${parts.filter((part) => part !== null).join('; ')}`;
}

const GIVEN_MAX_LENGTH = 120;

/** A written value for a message: quoted, on one line, cut where it is long; a secret's is not shown. */
export function showGiven(written: unknown, secret: boolean): string {
  if (secret && written !== null) return '(a secret, not shown)';
  // A URL can carry a password even where none belongs.
  const text = (JSON.stringify(written) ?? 'nothing').replace(/\/\/[^/\s"]*@/g, '//***@');
  return text.length > GIVEN_MAX_LENGTH ? `${text.slice(0, GIVEN_MAX_LENGTH)}...` : text;
}
