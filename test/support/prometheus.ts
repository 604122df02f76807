/** The real Prometheus, with the rules and the scrape job that are deployed, at targets of a test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { freePort } from './loopback.ts';

const DEPLOYED = join(import.meta.dirname, '../../deploy/prometheus');
const WITHIN = { timeout: 20_000, interval: 100 };

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

export class Prometheus {
  readonly #url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.#url = url;
    this.#child = child;
  }

  /** Until the test ends. Scrapes `targets`, `host:port` of admin listeners, and looks at rules every second. */
  static async start(program: string, targets: readonly string[], token: string): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'evalgate-prometheus-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await configure(folder, targets, token);
    const address = `127.0.0.1:${await freePort()}`;
    const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${address}`];
    const child = spawn(program, args, { cwd: folder, stdio: 'ignore' });
    const prometheus = new Prometheus(`http://${address}`, child);
    onTestFinished(() => prometheus.#close());
    await prometheus.until('it is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
    return prometheus;
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
    await vi.waitFor(async () => {
      if (!(await isSo())) throw new Error(`Prometheus does not come to this: ${what}`);
    }, WITHIN);
  }

  async #close(): Promise<void> {
    const exit = once(this.#child, 'exit');
    if (this.#child.kill('SIGKILL')) await exit;
  }
}

/** The deployed configuration, except for targets, token and intervals. */
async function configure(folder: string, targets: readonly string[], token: string): Promise<void> {
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
