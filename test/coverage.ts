/**
 * `npm run coverage`: which lines of `src` run in tests at the door, and which in all tests, by room. The door is what
 * users have: HTTP, the command line and Redis. The page is covered by the browser and not counted here.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { z } from 'zod';

const DOOR = ['http', 'cli', 'contract', 'integration', 'faults', 'tracing', 'browser', 'openapi'];
const SOURCE = join(import.meta.dirname, '../src');
const OUTPUT = join(import.meta.dirname, '../coverage');

const summarySchema = z.record(z.string(), z.object({ lines: z.object({ total: z.number(), covered: z.number() }) }));

interface Lines {
  total: number;
  covered: number;
}

const door = measure(
  'door',
  DOOR.map((folder) => `test/${folder}/`),
);
const all = measure('all', []);
const rooms = [...new Set([...door.keys(), ...all.keys()])].toSorted();
process.stdout.write(`\n| room | lines | tests at the door | all tests |\n|---|---|---|---|\n`);
for (const room of rooms) {
  process.stdout.write(
    `| ${room} | ${all.get(room)?.total ?? 0} | ${percent(door.get(room))} | ${percent(all.get(room))} |\n`,
  );
}

/** Runs the tests and adds up the lines of each room, with a row for all of them. */
function measure(name: string, filters: readonly string[]): Map<string, Lines> {
  mkdirSync(join(OUTPUT, name), { recursive: true });
  const { status } = spawnSync(
    'npx',
    [
      'vitest',
      'run',
      '--project=logic',
      '--project=processes',
      '--coverage.enabled',
      '--coverage.include=src/**/*.ts',
      '--coverage.exclude=src/admin/dashboard/page/**',
      '--coverage.reporter=json-summary',
      '--coverage.reporter=html',
      '--coverage.reportOnFailure',
      `--coverage.reportsDirectory=coverage/${name}`,
      ...filters,
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  if (status !== 0) process.exitCode = 1;
  const summary = summarySchema.parse(JSON.parse(readFileSync(join(OUTPUT, name, 'coverage-summary.json'), 'utf8')));
  const byRoom = new Map<string, Lines>();
  for (const [file, { lines }] of Object.entries(summary)) {
    const room = file === 'total' ? 'all' : roomOf(relative(SOURCE, file));
    const sum = byRoom.get(room) ?? { total: 0, covered: 0 };
    sum.total += lines.total;
    sum.covered += lines.covered;
    byRoom.set(room, sum);
  }
  return byRoom;
}

/** The folder directly below `src`; files that lie in `src` itself are one room. */
function roomOf(path: string): string {
  return path.includes('/') ? (path.split('/')[0] ?? '') : 'src';
}

function percent(lines: Lines | undefined): string {
  if (lines === undefined || lines.total === 0) return '-';
  return `${((100 * lines.covered) / lines.total).toFixed(1)} %`;
}
