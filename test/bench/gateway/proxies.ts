/** nginx and Varnish, configured to do what they can of what the gateway does. Null if they are not installed. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { programOnPath } from '../../support/process.ts';
import { freePort } from '../../support/loopback.ts';
import { launch, SERVER_CORE } from './processes.ts';
import type { Server } from './server.ts';

interface ProxyOptions {
  readonly originUrl: string;
  readonly keys: readonly string[];
}

/** A cache, a rate limit a key, a key check by a map; the access log goes to the null device. */
export async function startNginx({ originUrl, keys }: ProxyOptions): Promise<Server | null> {
  if (programOnPath('nginx') === null) return null;
  const folder = await openFolder();
  const port = await freePort();
  const map = keys.map((key, index) => `    "Bearer ${key}" "key${index}";`).join('\n');
  await writeFile(
    join(folder, 'nginx.conf'),
    `worker_processes 1; daemon off; pid ${folder}/pid; error_log /dev/null;
events { worker_connections 4096; }
http {
  access_log /dev/null;
  map_hash_bucket_size 256;
  client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  proxy_cache_path ${folder}/cache keys_zone=answers:10m;
  map $http_authorization $key {
    default "";
${map}
  }
  limit_req_zone $key zone=limit:10m rate=1000000r/s;
  keepalive_requests 1000000000;
  server {
    listen 127.0.0.1:${port};
    if ($key = "") { return 401; }
    location / {
      limit_req zone=limit burst=1000000 nodelay;
      proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_key $uri$is_args$args;
      add_header Cache-Status $upstream_cache_status;
      proxy_pass ${originUrl};
    }
  }
}
`,
  );
  const nginx = launch({ core: SERVER_CORE, command: ['nginx', '-c', join(folder, 'nginx.conf'), '-e', '/dev/null'] });
  return await ready('nginx', port, { ...nginx, folder });
}

/** A cache and a key check; without modules of others it has no rate limit. */
export async function startVarnish({ originUrl, keys }: ProxyOptions): Promise<Server | null> {
  if (programOnPath('varnishd') === null) return null;
  const folder = await openFolder();
  const port = await freePort();
  const origin = new URL(originUrl);
  const pattern = `^Bearer (${keys.join('|')})$`;
  await writeFile(
    join(folder, 'default.vcl'),
    `vcl 4.1;
backend default { .host = "${origin.hostname}"; .port = "${origin.port}"; }
sub vcl_recv {
  if (req.http.Authorization !~ "${pattern}") { return (synth(401)); }
  return (hash);
}
sub vcl_backend_response { set beresp.ttl = 1h; }
`,
  );
  const varnish = launch({
    core: SERVER_CORE,
    command: [
      'varnishd',
      '-F',
      '-n',
      join(folder, 'work'),
      '-a',
      `127.0.0.1:${port}`,
      '-f',
      join(folder, 'default.vcl'),
    ],
  });
  return await ready('varnish', port, { ...varnish, folder });
}

interface Launched {
  readonly pid: number;
  readonly stop: () => Promise<void>;
  readonly folder: string;
}

async function ready(name: string, port: number, { pid, stop, folder }: Launched): Promise<Server> {
  const url = `http://127.0.0.1:${port}`;
  const deadline = performance.now() + 10_000;
  while (!(await answers(url))) {
    if (performance.now() > deadline) throw new Error(`${name} did not answer within 10 s`);
    await sleep(50);
  }
  return {
    name,
    url,
    pid,
    stop: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Both give their workers to a user of lesser rights if they are started by root. */
async function openFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-bench-proxy-'));
  await chmod(folder, 0o777);
  return folder;
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}
