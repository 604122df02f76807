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

/**
 * 503 only where requests should go elsewhere. A dependency that is down takes no process out of service: it would take
 * out all of them at once, and each can still serve from its cache.
 */
export function readinessStatus({ status }: Readiness): 200 | 503 {
  return status === 'ready' ? 200 : 503;
}

/** JSON with a line a dependency, to be read by eye, by grep and by machines. */
export function renderReadiness({ status, dependencies }: Readiness): string {
  const lines = dependencies.map(
    (dependency) =>
      `\n    ${JSON.stringify({ name: dependency.name, status: dependency.status, since: dependency.since, detail: dependency.detail })}`,
  );
  const list = lines.length === 0 ? '[]' : `[${lines.join(',')}\n  ]`;
  return `{\n  "status": ${JSON.stringify(status)},\n  "dependencies": ${list}\n}\n`;
}
