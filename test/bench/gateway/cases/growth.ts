/** How the cost of a hot read grows with what it reads, who reads and how many processes there are. No bars. */
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, type Table } from '../case.ts';
import type { Measured } from '../measure.ts';
import { LIST, listOf, TRANSCRIPT_ID, TRANSCRIPT_PAGE } from '../paths.ts';

const LIST_SIZES = [1, 10, 50];
const PAGE_CHARACTERS = [1000, 10_000, 50_000];
const KEY_COUNTS = [1, 8, 64, 512];
const PROCESSES = [1, 2, 4];

export async function growth(bench: Bench): Promise<CaseResult> {
  const tables = [await byBody(bench), await byKeys(bench), await byProcesses(bench)];
  return { rows: [], tables };
}

async function byBody(bench: Bench): Promise<Table> {
  const gateway = await bench.evalgate();
  const headers = bearer(await gateway.createKey());
  const paths: readonly (readonly [string, string])[] = [
    ...LIST_SIZES.map((size) => [`list of ${size}`, listOf(size)] as const),
    ...PAGE_CHARACTERS.map(
      (most) =>
        [`transcript page of ${most}`, `/v2/calls/${TRANSCRIPT_ID}/transcript?maxChars=${most}&pageSize=200`] as const,
    ),
    ['transcript page 40', TRANSCRIPT_PAGE],
  ];
  const measured = await bench.measure(
    paths.map(([name, path]) => ({ name, server: gateway, load: { requests: [{ path, headers }] } })),
  );
  await bench.stopServers();
  return comparison('By what is read', measured);
}

async function byKeys(bench: Bench): Promise<Table> {
  const gateway = await bench.evalgate();
  const keys = await gateway.createKeys(Math.max(...KEY_COUNTS));
  const measured = await bench.measure(
    KEY_COUNTS.map((count) => ({
      name: `${count} keys in turn`,
      server: gateway,
      load: { requests: keys.slice(0, count).map((key) => ({ path: LIST, headers: bearer(key) })) },
    })),
  );
  await bench.stopServers();
  return comparison('By the number of keys', measured);
}

/** Each process under load for itself, while the others are there and do nothing: what belonging to a fleet costs. */
async function byProcesses(bench: Bench): Promise<Table> {
  const all: Measured[] = [];
  for (const count of PROCESSES) {
    const gateways = await Promise.all(Array.from({ length: count }, () => bench.evalgate()));
    const [gateway] = gateways;
    if (gateway === undefined) throw new Error('no gateway was started');
    const headers = bearer(await gateway.createKey());
    all.push(
      ...(await bench.measure([
        { name: `fleet of ${count}`, server: gateway, load: { requests: [{ path: LIST, headers }] } },
      ])),
    );
    await bench.stopServers();
  }
  return comparison('By the number of processes over one Redis', all);
}
