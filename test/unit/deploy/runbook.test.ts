import { type Command, CommanderError } from 'commander';
import { beforeAll, expect, test } from 'vitest';
import { cacheCommand } from '../../../src/cli/cache/index.ts';
import { makeGroup } from '../../../src/cli/command.ts';
import { doctorCommand } from '../../../src/cli/doctor/index.ts';
import { fleetCommand } from '../../../src/cli/fleet.ts';
import { keysCommand } from '../../../src/cli/keys/index.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { queriesOfPages, readText } from './files.ts';
import { knownMetrics, type KnownMetrics } from './known-metrics.ts';
import { parseQuery } from './promql.ts';

const PAGES = ['docs/runbook.md', 'deploy/kubernetes/README.md'] as const;
const pages = PAGES.map(readText).join('\n');
const runbook = readText('docs/runbook.md');

let known: KnownMetrics;
beforeAll(async () => {
  known = await knownMetrics();
});

test('every query of the runbook is PromQL, of metrics and labels that are there', () => {
  const queries = queriesOfPages(['docs/runbook.md']);
  expect(queries.length).toBeGreaterThan(25);
  for (const expr of queries) {
    const query = parseQuery(expr);
    expect({ expr, faults: query.faults, unknown: known.unknownIn(query) }).toEqual({ expr, faults: [], unknown: [] });
  }
});

/** A command as it is written: quotes hold words together, and a remark ends it. */
function wordsOf(line: string): readonly string[] {
  const command = line.replace(/\s{2,}#.*$/, '');
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

function commandsIn(text: string): readonly string[] {
  const inBlocks = [...text.matchAll(/^(?:npx |.*(?: -- | exec gateway-1 ))?evalgate ([a-z][^`\n]*)$/gm)];
  const inText = [...text.matchAll(/`evalgate ([a-z][^`]*)`/g)];
  return [...inBlocks, ...inText].map(([, command = '']) => command.replaceAll(/\n/g, ' '));
}

test('every command of the runbook and of the page on Kubernetes is one that the program takes', async () => {
  const commands = commandsIn(pages).map((command) => command.replace(/\.\.\./, 'all'));
  expect(commands.length).toBeGreaterThan(35);
  const refused = await Promise.all(commands.map(async (command) => ({ command, why: await refusalOf(command) })));
  expect(refused.filter(({ why }) => why !== null)).toEqual([]);
});

test('a command that there is none of is found out', async () => {
  expect(await refusalOf('cache ttl set lists --fresh 2m')).toMatch(/lists/);
  expect(await refusalOf('cache purge --tag all --hard')).toMatch(/--hard/);
  expect(await refusalOf('fleet list')).toMatch(/too many arguments/);
  expect(await refusalOf('fleets')).toMatch(/unknown command|too many arguments/);
});

/** Why the program wouldn't begin the command; null where it would. */
async function refusalOf(command: string): Promise<string | null> {
  const begun = 'begun';
  const terminal = silentTerminal();
  const program = makeGroup({ name: 'evalgate', summary: '', details: '', examples: [] }, terminal);
  for (const one of [cacheCommand(terminal), keysCommand(terminal), fleetCommand(terminal), doctorCommand(terminal)]) {
    program.addCommand(one);
  }
  everyCommand(program, (one) => {
    one.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
    one.hook('preAction', () => {
      throw new Error(begun);
    });
  });
  try {
    await program.parseAsync([...wordsOf(command)], { from: 'user' });
    return 'nothing was begun';
  } catch (error) {
    if (error instanceof CommanderError) return error.message;
    return error instanceof Error && error.message === begun ? null : String(error);
  }
}

/** Nobody is there, and nothing is set. */
function silentTerminal(): Terminal {
  return {
    env: {},
    out: () => {},
    err: () => {},
    readInput: () => Promise.resolve(''),
    confirm: () => Promise.resolve(null),
  };
}

function everyCommand(command: Command, visit: (command: Command) => void): void {
  visit(command);
  for (const inner of command.commands) everyCommand(inner, visit);
}

test('redis-cli is never given REDIS_URL as it is: it takes no Sentinels, no Cluster and no options', () => {
  expect(runbook.match(/redis-cli -u \S+/g)?.length).toBeGreaterThan(5);
  expect(runbook).not.toMatch(/redis-cli -u "?\$\{?REDIS_URL/);
});

test('every path of the admin listener that the runbook names answers', async () => {
  const paths = new Set([...runbook.matchAll(/\$ADMIN(\/[a-z/]*[a-z])/g)].map(([, path = '']) => path));
  expect([...paths].toSorted()).toEqual(['/api/audit', '/api/config', '/readyz']);
  const gateway = await startTestGateway();
  try {
    for (const path of paths) expect((await gateway.admin('GET', path)).status).toBe(200);
  } finally {
    await gateway.close();
  }
});

test('every link inside the runbook leads to a section', () => {
  const sections = [...runbook.matchAll(/^## (.*)$/gm)].map(([, title = '']) => `#${title.toLowerCase()}`);
  const links = [...runbook.matchAll(/\]\((#[^)]*)\)/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(15);
  expect(links.filter((link) => !sections.includes(link))).toEqual([]);
});
