/** Whether this process can take requests, and how what it depends on is doing. */

export interface Dependency {
  readonly name: string;
  /** By the outcome of real calls; `unknown` before the first. */
  readonly status: 'ok' | 'degraded' | 'unknown';
  /** Since when it has that status: ISO 8601. */
  readonly since: string;
  /** For an operator. Holds no secret: probes need no token. */
  readonly detail: string;
}

export interface Readiness {
  readonly status: 'ready' | 'starting' | 'draining';
  readonly dependencies: readonly Dependency[];
}

/** JSON with one line per dependency, to be read by eye, by grep and by machines. */
export function renderReadiness({ status, dependencies }: Readiness): string {
  const lines = dependencies.map((dependency) => `\n    ${JSON.stringify(dependency)}`);
  const list = lines.length === 0 ? '[]' : `[${lines.join(',')}\n  ]`;
  return `{\n  "status": ${JSON.stringify(status)},\n  "dependencies": ${list}\n}\n`;
}
