/** The real Prometheus, with the rules and the scrape job that are deployed, at targets of a test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { programOnPath } from './process.ts';
import { freePort } from './redis/server.ts';

const DEPLOYED = join(import.meta.dirname, '../../deploy/prometheus');
const START_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 100;

const resultsSchema = z.object({
  status: z.literal('success'),
  warnings: z.array(z.string()).default([]),
  data: z.object({
    result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) })),
  }),
});
const rulesSchema = z.object({
  data: z.object({
    groups: z.array(
      z.object({
        rules: z.array(
          z.object({
            name: z.string(),
            health: z.string(),
            state: z.enum(['inactive', 'pending', 'firing']).optional(),
            lastError: z.string().optional(),
          }),
        ),
      }),
    ),
  }),
});

export type LoadedRule = z.infer<typeof rulesSchema>['data']['groups'][number]['rules'][number];

export interface PrometheusOptions {
  /** `host:port` of admin listeners. */
  readonly targets: readonly string[];
  readonly token: string;
}

export class Prometheus {
  readonly #url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.#url = url;
    this.#child = child;
    this.#folder = folder;
  }

  /** Scrapes and looks at rules every second. Throws if there is no Prometheus on the PATH. */
  static async start(options: PrometheusOptions): Promise<Prometheus> {
    const program = programOnPath('prometheus');
    if (program === null) {
      throw new Error('There is no prometheus on the PATH. On Debian: apt-get install prometheus.');
    }
    const folder = await mkdtemp(join(tmpdir(), 'evalgate-prometheus-'));
    await configure(folder, options);
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      program,
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=${address}`,
      ],
      { stdio: 'ignore' },
    );
    const opened = new Prometheus(`http://${address}`, child, folder);
    try {
      await opened.until('it is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
    } catch (error) {
      await opened.close();
      throw error;
    }
    return opened;
  }

  /** The samples of a query at this moment. Throws if Prometheus refuses the query or warns of it. */
  async query(
    expr: string,
  ): Promise<readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[]> {
    const response = await fetch(`${this.#url}/api/v1/query`, {
      method: 'POST',
      body: new URLSearchParams({ query: expr }),
    });
    const parsed = resultsSchema.safeParse(await response.json());
    if (!parsed.success || parsed.data.warnings.length > 0) throw new Error(`Prometheus does not take ${expr}`);
    return parsed.data.data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
  }

  async rules(): Promise<readonly LoadedRule[]> {
    const response = await fetch(`${this.#url}/api/v1/rules`);
    return rulesSchema.parse(await response.json()).data.groups.flatMap(({ rules }) => rules);
  }

  /** Looks again and again. Throws, with what was waited for, after 20 s. */
  async until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + START_WITHIN_MS;
    while (performance.now() < end) {
      if (await isSo().catch(() => false)) return;
      await wait(LOOK_EVERY_MS);
    }
    throw new Error(`Prometheus: in ${START_WITHIN_MS / 1000} s it did not come to this: ${what}`);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exit = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await exit;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** The deployed configuration, except for targets, token and intervals. */
async function configure(folder: string, { targets, token }: PrometheusOptions): Promise<void> {
  const document = parseDocument(await readFile(join(DEPLOYED, 'prometheus.yml'), 'utf8'));
  const tokenFile = join(folder, 'token');
  const job = ['scrape_configs', 0] as const;
  document.setIn(['global'], { scrape_interval: '1s', evaluation_interval: '1s' });
  document.setIn([...job, 'authorization', 'credentials_file'], tokenFile);
  document.setIn([...job, 'static_configs', 0, 'targets'], targets);
  await writeFile(tokenFile, token);
  await writeFile(join(folder, 'prometheus.yml'), document.toString());
  await copyFile(join(DEPLOYED, 'alerts.yaml'), join(folder, 'alerts.yaml'));
}
