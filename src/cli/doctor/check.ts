/** One thing that the doctor looked at. */

/** `warn` can be lived with; `skipped` could not be looked at, or there is nothing to look at. */
export type CheckStatus = 'ok' | 'warn' | 'fail' | 'skipped';

export interface Check {
  readonly name: string;
  readonly status: CheckStatus;
  /** What was found. */
  readonly message: string;
  /** What to do about it; null where there is nothing to do. */
  readonly advice: string | null;
}

export function ok(name: string, message: string): Check {
  return { name, status: 'ok', message, advice: null };
}

export function warn(name: string, message: string, advice: string): Check {
  return { name, status: 'warn', message, advice };
}

/** Without advice where the message itself says what to do. */
export function fail(name: string, message: string, advice: string | null): Check {
  return { name, status: 'fail', message, advice };
}

export function skipped(name: string, message: string): Check {
  return { name, status: 'skipped', message, advice: null };
}
