/** /api/cache/maintenance: keeping every call from the store for a while. Every change goes into the audit. */
import { z } from 'zod';
import type { Maintenance, MaintenanceControl } from '../cache/maintenance.ts';
import type { Clock } from '../clock.ts';
import { formatDuration, parseDuration } from '../duration.ts';
import { attempt, type AttemptedChange } from './attempt.ts';
import type { Audit } from './audit.ts';
import { BODY_LIMIT_BYTES, readJson } from './body.ts';
import { callerOf, type EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { type BodyRules, faulty, mustBe } from './faults.ts';

export interface MaintenanceEndpointOptions {
  readonly maintenance: MaintenanceControl;
  readonly audit: Audit;
  readonly clock: Clock;
}

/** After a longer one copies would have expired, and nobody would remember it. */
export const LONGEST_MAINTENANCE_MS = 86_400_000;

const PATH = '/api/cache/maintenance';
const TARGET = 'store';
const ON = 'cache.maintenance.on';
/** The action if it was on already: only its end has moved. */
const MOVE = 'cache.maintenance.move';
const ALLOWED = {
  for: 'a duration above 0s and up to 1d, such as 90s, 30m or 2h',
  until: 'a time within the next 24 hours in ISO 8601, such as 2026-01-15T12:00:00Z',
};

const TIMES: BodyRules<{ readonly forMs: number | null; readonly untilMs: number | null }> = {
  schema: z
    .strictObject({
      for: z
        .string()
        .transform((text) => parseDuration(text) ?? 0)
        .refine((ms) => ms > 0 && ms <= LONGEST_MAINTENANCE_MS)
        .optional(),
      until: z.iso
        .datetime({ offset: true })
        .transform((text) => Date.parse(text))
        .optional(),
    })
    .transform((given) => ({ forMs: given.for ?? null, untilMs: given.until ?? null })),
  allowed: ALLOWED,
};

export function maintenanceEndpoints(options: MaintenanceEndpointOptions): readonly Endpoint[] {
  const { maintenance, clock } = options;
  return [
    {
      method: 'GET',
      path: PATH,
      what: 'whether maintenance keeps calls from the store, until when, and who began it',
      handle: async (ctx) => {
        ctx.body = viewOf(maintenance.current(), clock);
      },
    },
    {
      method: 'PUT',
      path: PATH,
      what: 'keep every call from the store for a while, a day at most: copies are served, reads without one fail; it ends by itself',
      handle: async (ctx) => {
        const untilMs = endOf(await readJson(ctx, BODY_LIMIT_BYTES), clock);
        const asked = { until: iso(untilMs) };
        await change(ctx, { action: ON, asked }, options, () => maintenance.begin(untilMs, callerOf(ctx)));
      },
    },
    {
      method: 'DELETE',
      path: PATH,
      what: 'end maintenance: the store is called again',
      handle: (ctx) => change(ctx, { action: 'cache.maintenance.off', asked: null }, options, () => maintenance.end()),
    },
  ];
}

/** Makes the change and answers with the state after it. Ending may be repeated: if it is off, nothing is audited. */
async function change(
  ctx: EndpointContext,
  { action, asked }: Pick<AttemptedChange, 'action' | 'asked'>,
  { audit, clock }: MaintenanceEndpointOptions,
  run: () => ReturnType<MaintenanceControl['end']>,
): Promise<void> {
  const about = { who: callerOf(ctx), action, target: TARGET };
  const { from, to } = await attempt(audit, { ...about, asked }, run);
  if (from !== null || to !== null) {
    const isMoved = from !== null && to !== null;
    await audit.record({ ...about, action: isMoved ? MOVE : action, from: audited(from), to: audited(to) });
  }
  ctx.body = viewOf(to, clock);
}

function audited(maintenance: Maintenance | null): object | null {
  return maintenance === null ? null : { until: iso(maintenance.untilMs), by: maintenance.by };
}

/** The end that a body asks for, in Unix milliseconds. Throws AdminError 400. */
function endOf(body: unknown, clock: Clock): number {
  const { forMs, untilMs } = mustBe(TIMES, body);
  const nowMs = clock.nowMs();
  if (forMs !== null && untilMs === null) return nowMs + forMs;
  if (forMs !== null || untilMs === null) {
    const given = forMs === null ? 'neither for nor until' : 'both for and until';
    throw faulty([`the body: holds ${given}; allowed: one of them: for: ${ALLOWED.for}; until: ${ALLOWED.until}`]);
  }
  if (untilMs > nowMs && untilMs - nowMs <= LONGEST_MAINTENANCE_MS) return untilMs;
  const gap = untilMs > nowMs ? `${formatDuration(untilMs - nowMs)} from now` : 'in the past';
  throw faulty([
    `until: given a time that is ${gap}, by this gateway's clock (${iso(nowMs)}); allowed: ${ALLOWED.until}`,
  ]);
}

function viewOf(maintenance: Maintenance | null, clock: Clock): object {
  if (maintenance === null) return { active: false, until: null, leftMs: 0, by: null, since: null };
  const { sinceMs, untilMs, by } = maintenance;
  const leftMs = Math.max(0, untilMs - clock.nowMs());
  return { active: true, until: iso(untilMs), leftMs, by, since: iso(sinceMs) };
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
