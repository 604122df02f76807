/** Shared caches in front of a gateway, each as its documentation sets it up, and once more so that it keeps private answers. */
import { spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { programOnPath } from '../support/process.ts';
import { freePort } from '../support/loopback.ts';
import { unpacked } from '../support/unpacked.ts';

/** Whether it heeds `Cache-Control: private`, or keeps what is private too: then only `Vary` separates the keys. */
export type Manner = 'as it is' | 'made to keep private answers';

export interface RunningCache {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

interface Setting {
  readonly folder: string;
  readonly port: number;
  /** The gateway. */
  readonly origin: URL;
  readonly isForced: boolean;
  /** The path of a file of its packages. */
  readonly path: (name: string) => string;
}

interface Program {
  /** How it is tried. Squid keeps no private answer to a request with Authorization, not even with `ignore-private`. */
  readonly manners: readonly Manner[];
  /** Its name on the PATH. */
  readonly name: string;
  readonly file: string;
  readonly packages: readonly string[];
  readonly config: (setting: Setting) => string;
  readonly args: (setting: Setting, file: string) => readonly string[];
}

const IS_ROOT = process.getuid?.() === 0;
const START_WITHIN_MS = 20_000;

export const SHARED_CACHES: Readonly<Record<string, Program>> = {
  nginx: {
    manners: ['as it is', 'made to keep private answers'],
    name: 'nginx',
    file: 'usr/sbin/nginx',
    packages: ['nginx'],
    config: ({ folder, port, origin, isForced }) => `
${IS_ROOT ? 'user root;' : ''}
daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  proxy_cache_path ${folder}/cache keys_zone=answers:10m;
  proxy_buffer_size 16k; proxy_buffers 8 16k;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${origin.origin};
      proxy_cache answers;
      ${isForced ? 'proxy_ignore_headers Cache-Control Expires; proxy_cache_valid 200 404 60s;' : ''}
    }
  }
}`,
    args: ({ folder }, file) => ['-c', file, '-e', join(folder, 'error.log')],
  },
  Varnish: {
    manners: ['as it is', 'made to keep private answers'],
    name: 'varnishd',
    file: 'usr/sbin/varnishd',
    packages: ['varnish', 'libvarnishapi3', 'libjemalloc2'],
    config: ({ origin, isForced }) => `vcl 4.1;
backend default { .host = "${origin.hostname}"; .port = "${origin.port}"; }
${
  isForced
    ? `sub vcl_recv { return (hash); }
sub vcl_backend_response { set beresp.ttl = 60s; set beresp.uncacheable = false; return (deliver); }`
    : ''
}
`,
    args: ({ folder, port }, file) => {
      return [
        '-F',
        '-j',
        'none',
        '-n',
        join(folder, 'work'),
        '-a',
        `127.0.0.1:${port}`,
        '-s',
        'malloc,32m',
        '-f',
        file,
      ];
    },
  },
  Squid: {
    manners: ['as it is'],
    name: 'squid',
    file: 'usr/sbin/squid',
    packages: [
      'squid',
      'squid-common',
      'squid-langpack',
      'libecap3',
      'libltdl7',
      'libnfnetlink0',
      'libnetfilter-conntrack3',
      'libtdb1',
    ],
    config: ({ folder, port, origin, path }) => `
http_port 127.0.0.1:${port} accel defaultsite=${origin.host} no-vhost
cache_peer ${origin.hostname} parent ${origin.port} 0 no-query originserver login=PASSTHRU
http_access allow all
cache_mem 32 MB
access_log none
cache_log ${folder}/cache.log
coredump_dir ${folder}
pid_filename ${folder}/pid
pinger_enable off
shutdown_lifetime 0 seconds
unlinkd_program ${path('usr/lib/squid/unlinkd')}
mime_table ${path('usr/share/squid/mime.conf')}
icon_directory ${path('usr/share/squid/icons')}
error_directory ${path('usr/share/squid/errors/templates')}
`,
    args: (_setting, file) => ['-N', '-f', file],
  },
  'Apache httpd': {
    manners: ['as it is', 'made to keep private answers'],
    name: 'apache2',
    file: 'usr/sbin/apache2',
    packages: ['apache2-bin', 'libapr1', 'libaprutil1', 'liblua5.3-0'],
    config: ({ folder, port, origin, isForced, path }) => `
${['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'cache', 'cache_disk']
  .map((name) => `LoadModule ${name}_module ${path(`usr/lib/apache2/modules/mod_${name}.so`)}`)
  .join('\n')}
ServerRoot ${folder}
ServerName 127.0.0.1
DefaultRuntimeDir ${folder}
PidFile ${folder}/pid
ErrorLog ${folder}/error.log
Listen 127.0.0.1:${port}
CacheRoot ${folder}
CacheEnable disk /
CacheQuickHandler ${isForced ? 'off' : 'on'}
${isForced ? 'CacheStorePrivate On' : ''}
ProxyPass / ${origin.origin}/
`,
    args: (_setting, file) => ['-X', '-f', file],
  },
};

/** Null if the program is neither installed nor to be had. The caller stops it. */
export async function startSharedCache(
  program: Program,
  gatewayUrl: string,
  manner: Manner,
): Promise<RunningCache | null> {
  const onPath = programOnPath(program.name);
  const packages = onPath === null ? await unpacked(program.name, program.packages).catch(() => null) : null;
  const file = onPath ?? packages?.path(program.file);
  if (file === undefined) return null;
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-cache-'));
  // Some give their workers to a user of lesser rights if they are started by root.
  await chmod(folder, 0o777);
  const path = (name: string): string => packages?.path(name) ?? `/${name}`;
  const isForced = manner === 'made to keep private answers';
  const setting = { folder, port: await freePort(), origin: new URL(gatewayUrl), isForced, path };
  const config = join(folder, 'config');
  await writeFile(config, program.config(setting));
  const child = spawn(file, program.args(setting, config), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...packages?.env },
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2000)));
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const url = `http://127.0.0.1:${setting.port}`;
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const deadlineMs = performance.now() + START_WITHIN_MS;
  while (!(await answers(url))) {
    if (performance.now() < deadlineMs && child.exitCode === null) {
      await sleep(50);
    } else {
      await stop();
      throw new Error(`${program.name} did not answer within ${START_WITHIN_MS} ms, or ended:\n${said}`);
    }
  }
  return { url, stop };
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}
