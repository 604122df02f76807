/** The TTLs of a simulated fleet: short, so that copies pass through all of their states within its life. */
const ttl = (freshMs: number, staleMs: number, errorMs: number) => ({ freshMs, staleMs, errorMs, outdatedLimit: 0.05 });

export const TIMES = {
  evaluation: ttl(2500, 2000, 5000),
  transcript: ttl(4000, 2000, 6000),
  list: ttl(1000, 1500, 4000),
  notFound: ttl(600, 0, 0),
} as const;

export const UPSTREAM_TIMEOUT_MS = 2000;
