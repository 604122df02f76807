/**
 * The stack that does the same work for a hot list as the gateway does, as a user of fastify would write it, from documented
 * parts: the key is hashed and looked up, its scope and workspace are checked, both windows of its quota are exact and decided
 * in Redis, the query is validated, and the answer comes from memory with all headers that the gateway's has, or as a 304.
 * Each request has an id, a line of the log and metrics.
 */
import { hash, randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { pino, stdTimeFunctions } from 'pino';
import { Counter, Histogram, Registry } from 'prom-client';

const FRESH_MS = 24 * 3_600_000;
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const COMMON_HEADERS = {
  vary: 'Authorization, Accept-Encoding',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};
const QUERY = {
  type: 'object',
  properties: {
    page: { type: 'integer', minimum: 1, default: 1 },
    limit: { type: 'integer', minimum: 1, maximum: 50, default: 50 },
    search: { type: 'string', maxLength: 100 },
    scorecardId: { type: 'string' },
  },
};

/**
 * KEYS: a list of the admitted requests' times in microseconds, oldest first. ARGV: the limits of the minute and the hour.
 * Returns now, how many each window holds with this one, its oldest and newest request, and if this one is admitted.
 */
const CONSUME = `
local log, time = KEYS[1], redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function at(index) return tonumber(redis.call('LINDEX', log, index) or now) end
while redis.call('LLEN', log) > 0 and at(0) < now - 3600000000 do redis.call('LPOP', log) end
local hour = redis.call('LLEN', log)
local low, high = math.max(0, hour - ARGV[1]), hour
if low < hour and at(low) < now - 60000000 then
  while low < high do
    local middle = math.floor((low + high) / 2)
    if at(middle) < now - 60000000 then low = middle + 1 else high = middle end
  end
end
local minute = hour - low
local admitted = 0
if minute < tonumber(ARGV[1]) and hour < tonumber(ARGV[2]) then
  redis.call('RPUSH', log, string.format('%.0f', now))
  redis.call('PEXPIRE', log, 3660000)
  minute, hour, admitted = minute + 1, hour + 1, 1
end
return {now, minute, at(low), hour, at(0), at(-1), admitted}
`;

/** @param {{ originUrl: string, redisUrl: string, keys: string[], workspaceIds: string[], limit: number }} options */
export function fastifyFull({ originUrl, redisUrl, keys, workspaceIds, limit }) {
  const app = Fastify({
    logger: {
      base: { service: 'peer', pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      stream: pino.destination({ dest: 2, sync: false, minLength: 8192 }),
    },
    disableRequestLogging: true,
    requestIdHeader: 'x-request-id',
    genReqId: () => randomUUID(),
  });
  const metrics = metricsOf(new Registry());
  const cached = new LRUCache({ max: 10_000 });
  const known = new Map(keys.map((token) => [hashOf(token), keyOf(token, workspaceIds)]));
  const redis = new Redis(redisUrl);
  redis.defineCommand('consumeQuota', { numberOfKeys: 1, lua: CONSUME });

  app.decorateRequest('key', null);
  app.decorateRequest('cacheOutcome', null);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'x-request-id': request.id, ...COMMON_HEADERS });
    const key = known.get(hashOf(bearerOf(request.headers)));
    if (key === undefined) return refuse(reply.header('www-authenticate', 'Bearer'), 401, 'The API key is not valid.');
    if (key.status !== 'active' || (key.expiresAtMs !== null && key.expiresAtMs <= Date.now()))
      return refuse(reply, 403, 'The API key is not active.');
    request.key = key;
  });
  app.addHook('onRequest', async (request, reply) => {
    const sentMs = performance.now();
    const usage = await redis.consumeQuota(`quota:${request.key.id}`, limit, limit);
    metrics.redisDurations.observe({ role: 'state' }, (performance.now() - sentMs) / 1000);
    const isAdmitted = usage[6] === 1;
    reply.headers(quotaHeaders(usage, limit));
    if (!isAdmitted) return refuse(reply.header('retry-after', '1'), 429, 'The rate limit of this API key is used up.');
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, cacheOutcome: cache, key } = request;
    const { statusCode: status, elapsedTime: durationMs } = reply;
    const route = routeOptions.url ?? 'unmatched';
    metrics.requests.inc({ surface: 'v1', route, method, status });
    metrics.durations.observe({ surface: 'v1', route, cache: cache ?? 'none' }, durationMs / 1000);
    const keyId = key?.id ?? null;
    request.log.info({ keyId, surface: 'v1', route, method, status, durationMs, cache }, 'request');
  });
  app.get('/v1/workspaces/:workspaceId/reports', { schema: { querystring: QUERY } }, async (request, reply) => {
    const { key, params, query } = request;
    if (!key.scopes.includes('reports.read') || !key.workspaceIds.includes(params.workspaceId.toLowerCase()))
      return refuse(reply, 403, 'This API key may not read reports here.');
    const { page, limit: pageSize, search = null, scorecardId = null } = query;
    const name = JSON.stringify([params.workspaceId, page, pageSize, search, scorecardId]);
    let entry = cached.get(name);
    request.cacheOutcome = entry === undefined ? 'miss' : 'hit';
    if (entry === undefined) {
      const answer = await fetch(originUrl + request.url);
      const body = Buffer.from(await answer.arrayBuffer());
      entry = { body, etag: `"${hash('sha256', body, 'base64url')}"`, atMs: Date.now(), link: linkOf(page, pageSize) };
      cached.set(name, entry);
    }
    const ageMs = Date.now() - entry.atMs;
    metrics.reads.inc({ class: 'list', outcome: request.cacheOutcome, tier: 'memory' });
    metrics.ages.observe({ class: 'list' }, ageMs / 1000);
    const ttlSeconds = Math.floor((FRESH_MS - ageMs) / 1000);
    reply.headers({
      etag: entry.etag,
      age: String(Math.floor(ageMs / 1000)),
      'cache-control': `private, max-age=${ttlSeconds}, must-revalidate`,
      'cache-status': `peer; ${request.cacheOutcome}; ttl=${ttlSeconds}`,
      link: entry.link,
    });
    if (request.headers['if-none-match'] === entry.etag) return reply.code(304).send();
    reply.type('application/json; charset=utf-8');
    return entry.body;
  });
  return app;
}

function metricsOf(registry) {
  const registers = [registry];
  const counter = (name, ...labelNames) => new Counter({ name, help: name, labelNames, registers });
  const histogram = (name, ...labelNames) =>
    new Histogram({ name, help: name, labelNames, registers, buckets: SECONDS });
  return {
    requests: counter('requests_total', 'surface', 'route', 'method', 'status'),
    durations: histogram('request_seconds', 'surface', 'route', 'cache'),
    reads: counter('reads_total', 'class', 'outcome', 'tier'),
    ages: histogram('age_seconds', 'class'),
    redisDurations: histogram('redis_seconds', 'role'),
  };
}

function keyOf(token, workspaceIds) {
  const scopes = ['reports.read', 'calls.read'];
  return { id: token.slice(-12), status: 'active', expiresAtMs: null, scopes, workspaceIds };
}

function hashOf(token) {
  return hash('sha256', token);
}

function bearerOf({ authorization = '' }) {
  return authorization.slice('Bearer '.length);
}

function refuse(reply, status, message) {
  return reply
    .code(status)
    .headers({ 'cache-control': 'no-store', 'x-error-code': 'refused' })
    .send({ error: message });
}

function linkOf(page, pageSize) {
  const link = (number, rel) => `<?page=${number}&limit=${pageSize}>; rel="${rel}"`;
  return [link(1, 'first'), link(page + 1, 'next'), link(125, 'last')].join(', ');
}

/** The ten of the API, and two of the IETF's draft. */
function quotaHeaders([now, minuteUsed, minuteOldest, hourUsed, hourOldest, newest], limit) {
  const [minuteLeft, hourLeft] = [limit - minuteUsed, limit - hourUsed];
  const [minuteReset, hourReset] = [60, 3600].map((length) => String(Math.ceil(newest / 1e6) + length));
  const [minuteFree, hourFree] = [minuteOldest + 60e6, hourOldest + 3600e6].map((at) => Math.ceil((at - now) / 1e6));
  const isHour = hourLeft < minuteLeft;
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(isHour ? hourLeft : minuteLeft),
    'x-ratelimit-reset': isHour ? hourReset : minuteReset,
    'x-ratelimit-active-window': isHour ? 'hour' : 'minute',
    'x-ratelimit-minute-limit': String(limit),
    'x-ratelimit-minute-remaining': String(minuteLeft),
    'x-ratelimit-minute-reset': minuteReset,
    'x-ratelimit-hour-limit': String(limit),
    'x-ratelimit-hour-remaining': String(hourLeft),
    'x-ratelimit-hour-reset': hourReset,
    'ratelimit-policy': `"minute";q=${limit};w=60, "hour";q=${limit};w=3600`,
    ratelimit: `"minute";r=${minuteLeft};t=${minuteFree}, "hour";r=${hourLeft};t=${hourFree}`,
  };
}
