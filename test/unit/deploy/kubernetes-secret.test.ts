import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { readText } from './files.ts';

/** What a shell makes of the values: another token in place of each variable and command. */
function literalsOf(page: string): ReadonlyMap<string, string> {
  let made = 0;
  const newToken = (): string => `token-${(made += 1)}`;
  const found = page.matchAll(/--from-literal=([\w-]+)=(?:"([^"\n]*)"|(\S+))/g);
  return new Map(
    [...found].map(([, name = '', quoted, bare = '']) => [
      name,
      (quoted ?? bare).replaceAll(/\$\([^)]*\)|\$\w+/g, newToken),
    ]),
  );
}

test('the secret of the page on Kubernetes, pasted as it is, is one that a gateway starts with', () => {
  const secret = literalsOf(readText('deploy/kubernetes/README.md'));
  expect([...secret.keys()]).toEqual([
    'admin-token',
    'metrics-token',
    'upstream-token',
    'redis-url',
    'redis-cache-url',
  ]);
  const { config } = loadConfig({
    env: {
      ADMIN_TOKEN: secret.get('admin-token'),
      UPSTREAM_URL: 'http://sample-store:9090',
      UPSTREAM_TOKEN: secret.get('upstream-token'),
      REDIS_URL: secret.get('redis-url'),
      REDIS_CACHE_URL: secret.get('redis-cache-url'),
    },
  });
  expect(config.redis).toEqual({ url: 'redis://redis-state:6379', cacheUrl: 'redis://redis-cache:6379' });
});
