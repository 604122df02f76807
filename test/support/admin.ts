/** Readers of the admin listener's answers and of the log, for tests. */
import { z } from 'zod';
import type { Reply, TestGateway } from './gateway.ts';

export const START = '2026-01-15T12:00:00.000Z';
/** Environment of a gateway with two tokens: `admin` sends that of alice. */
export const TOKENS = { ADMIN_TOKEN: 'alice=correct-horse,bob=battery-staple' };
export const AS_BOB = { authorization: 'Bearer battery-staple' };

const errorSchema = z.strictObject({ error: z.strictObject({ message: z.string() }) });

/** The message of `{error: {message}}`, which must be the whole body. */
export function messageOf(reply: Reply): string {
  return errorSchema.parse(reply.json).error.message;
}

export function faults(...lines: readonly string[]): string {
  const count = lines.length === 1 ? '1 fault' : `${lines.length} faults`;
  return [`The body has ${count}; nothing was changed.`, ...lines.map((line) => `- ${line}`)].join('\n');
}

const auditSchema = z.strictObject({
  problem: z.string().nullable(),
  entries: z.array(z.record(z.string(), z.unknown())),
});

export async function auditOf(gateway: TestGateway): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return auditSchema.parse((await gateway.admin('GET', '/api/audit')).json).entries;
}

/** The answer of a page of keys. */
export const keysSchema = z.strictObject({
  keys: z.array(z.looseObject({ keyId: z.string() })),
  nextCursor: z.string().nullable(),
});

const lineSchema = z.looseObject({
  level: z.string(),
  msg: z.string(),
  requestId: z.string().optional(),
  failure: z.string().nullish(),
  err: z.looseObject({ message: z.string() }).optional(),
});

/** The lines of the log so far. */
export function linesOf(gateway: TestGateway): readonly z.output<typeof lineSchema>[] {
  return gateway.logLines.map((line) => lineSchema.parse(JSON.parse(line)));
}

/** The lines of the log with that message, without what every line has. */
export function logOf(gateway: TestGateway, message: string): readonly Readonly<Record<string, unknown>>[] {
  return linesOf(gateway)
    .filter(({ msg }) => msg === message)
    .map(({ time: _time, pid: _pid, service: _service, msg: _msg, ...rest }) => rest);
}

const readinessSchema = z.strictObject({
  status: z.string(),
  dependencies: z.array(
    z.strictObject({ name: z.string(), status: z.string(), since: z.iso.datetime(), detail: z.string() }),
  ),
});

/** The report of /readyz, and one of its dependencies by name. */
export async function readinessOf(gateway: TestGateway) {
  const reply = await gateway.admin('GET', '/readyz');
  const { status, dependencies } = readinessSchema.parse(reply.json);
  return {
    code: reply.status,
    status,
    statuses: Object.fromEntries(dependencies.map((one) => [one.name, one.status])),
    of: (name: string) => dependencies.find((one) => one.name === name),
  };
}

/** The samples of /metrics whose names begin so, by name and labels. */
export async function samplesOf(gateway: TestGateway, ...prefixes: readonly string[]): Promise<Record<string, number>> {
  const { text } = await gateway.admin('GET', '/metrics');
  const lines = text.split('\n').filter((line) => prefixes.some((prefix) => line.startsWith(prefix)));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

/** The samples of /metrics that begin with that text, added up. */
export async function metricOf(gateway: TestGateway, start: string): Promise<number> {
  return Object.values(await samplesOf(gateway, start)).reduce((sum, value) => sum + value, 0);
}

const statsSchema = z.looseObject({ classes: z.array(z.looseObject({ class: z.string() })) });

export async function statsOf(gateway: TestGateway, cacheClass: string) {
  const { classes } = statsSchema.parse((await gateway.admin('GET', '/api/cache')).json);
  return classes.find((row) => row.class === cacheClass);
}
