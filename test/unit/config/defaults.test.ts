import { readFileSync } from 'node:fs';
import { isCollection, isMap, isPair, isScalar, parseDocument, visit } from 'yaml';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { listSettings } from '../../../src/config/settings.ts';

const text = readFileSync(new URL('../../../config/default.yaml', import.meta.url), 'utf8');

test('config/default.yaml holds every setting with its default, in the order of the schema, and nothing else', () => {
  const written = new Array<readonly [string, unknown]>();
  visit(parseDocument(text), {
    Pair(_, pair, ancestors) {
      if (isMap(pair.value)) return;
      const path = [...ancestors.filter(isPair), pair].map(({ key }) => (isScalar(key) ? String(key.value) : ''));
      written.push([
        path.join('.'),
        isScalar(pair.value) || isCollection(pair.value) ? pair.value.toJSON() : undefined,
      ]);
    },
  });
  expect(written).toEqual(listSettings().map(({ id, initial }) => [id, initial]));
});

/** The comment that stands right above a setting. */
function commentOn(path: readonly string[]): string {
  const lines = text.split('\n');
  let from = 0;
  for (const [depth, name] of path.entries()) {
    from = lines.findIndex((line, index) => index >= from && line.startsWith(`${'  '.repeat(depth)}${name}:`));
  }
  const above = lines.slice(0, from);
  const start = above.findLastIndex((line) => !line.trim().startsWith('#')) + 1;
  return above
    .slice(start)
    .join(' ')
    .replaceAll(/\s*#\s*/g, ' ');
}

test('config/default.yaml says of every value what it does, right above it, and names its environment variable', () => {
  const comments = listSettings().map(({ id, env, path }) => ({ id, env, comment: commentOn(path) }));
  expect(comments.filter(({ comment }) => comment.length < 40)).toEqual([]);
  expect(comments.filter(({ env, comment }) => env !== null && !new RegExp(`\\[${env}[\\],]`).test(comment))).toEqual(
    [],
  );
});

test('C1 and R1: without file and environment the times of every cache class and both limits are those decided', () => {
  const { config, resolved, warnings } = loadConfig({ env: {} });
  const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
  expect(config).toEqual({
    server: {
      host: '127.0.0.1',
      port: 8080,
      trustedProxies: [],
      drainDelayMs: 2000,
      maxConnections: 10_000,
      maxInFlight: 1000,
      workers: 1,
    },
    admin: { host: '127.0.0.1', port: 8081, tokens: [], allowedHosts: [] },
    redis: { url: null, cacheUrl: null, timeoutMs: 250 },
    upstream: {
      url: null,
      token: null,
      timeoutMs: 10_000,
      maxResponseBytes: 8_000_000,
      maxConnections: 50,
      maxQueue: 100,
      queueTimeoutMs: 1000,
      maxRequestsPerSecond: null,
      retryPercent: 10,
      breakerPercent: 50,
    },
    keys: { source: 'registry', graceMs: 10 * minute },
    rateLimit: { perMinute: 120, perHour: 3000 },
    api: { deprecations: [] },
    cache: {
      memoryBytes: 64_000_000,
      classes: {
        list: { freshMs: 30 * second, staleMs: 5 * minute, errorMs: hour },
        evaluation: { freshMs: 5 * minute, staleMs: hour, errorMs: day },
        transcript: { freshMs: hour, staleMs: day, errorMs: 7 * day },
        scorecard: { freshMs: 15 * minute, staleMs: hour, errorMs: day },
        rubric: { freshMs: 10 * minute, staleMs: hour, errorMs: day },
        dealInsights: { freshMs: 5 * minute, staleMs: hour, errorMs: day },
        notFound: { freshMs: 15 * second, staleMs: 0, errorMs: 0 },
      },
      outdatedLimits: {
        list: 0.02,
        evaluation: 0.02,
        transcript: 0.02,
        scorecard: 0.02,
        rubric: 0.02,
        dealInsights: 0.02,
        notFound: 0.02,
      },
    },
    log: { level: 'info' },
  });
  expect(warnings).toEqual([]);
  expect(new Set(resolved.map(({ origin }) => origin))).toEqual(new Set(['default']));
});

test('the configuration is frozen to its depth', () => {
  const { config } = loadConfig({ env: { TRUSTED_PROXIES: '10.0.0.0/8' } });
  for (const part of [config, config.cache.classes.list, config.server.trustedProxies, config.admin.tokens]) {
    expect(Object.isFrozen(part)).toBe(true);
  }
});
