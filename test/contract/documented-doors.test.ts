/** Only documented doors: nothing reads, overrides or loads what a library or Node.js keeps to itself. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
  /** Breaks the rule, so that a rule that matches nothing is noticed. */
  readonly example: string;
}

const CODE_RULES: readonly Rule[] = [
  { name: "Node's response head is private", pattern: /_storeHeader/, example: 'res._storeHeader(head, null)' },
  { name: "ioredis's command set-up is private", pattern: /\binitPromise\b/, example: 'this.initPromise()' },
  {
    name: "Koa's inner methods are private",
    pattern: /\.(?:createContext|handleRequest)\s*\(/,
    example: 'app.createContext(req, res)',
  },
  { name: "the router's match is private", pattern: /\brouter\.match\s*\(/i, example: 'router.match(path, method)' },
  {
    name: "pino's symbols are private",
    pattern: /\b(?:pino\.symbols|streamSym|symbols\.\w+Sym)\b/,
    example: 'logger[pino.symbols.streamSym]',
  },
  { name: 'no V8 flags', pattern: /setFlagsFromString/, example: "setFlagsFromString('--no-opt')" },
  {
    name: 'nothing of a library is deleted or redefined',
    pattern: /\bReflect\.deleteProperty\b|\bObject\.definePropert(?:y|ies)\b|\bObject\.setPrototypeOf\b/,
    example: "Reflect.deleteProperty(res, 'assignSocket')",
  },
  {
    name: 'no prototype of a library is changed',
    pattern: /\.prototype\.\w+\s*=[^=]/,
    example: 'Redis.prototype.sendCommand = send',
  },
  {
    name: 'no collector tricks',
    pattern: /\bFinalizationRegistry\b|\bglobalThis\.gc\b|\bexpose[-_]gc\b/,
    example: 'new FinalizationRegistry(free)',
  },
  {
    name: "Node's inner bindings are private",
    pattern: /\bprocess\.(?:binding\b|_)/,
    example: 'process._getActiveHandles()',
  },
  {
    name: 'underscore members are private',
    pattern: /(?:\??\.|\[')_(?!id\b|_proto__)[a-z]\w*/,
    example: 'socket._handle',
  },
  {
    name: 'classes of libraries and of Node are not subclassed',
    pattern:
      /\bextends\s+(?:\w+\.)?(?:Redis|Cluster|Command|AbstractConnector|ServerResponse|IncomingMessage|OutgoingMessage|Server|Socket|Agent|Koa|Router|Counter|Gauge|Histogram|Summary|Registry|LRUCache)\b/,
    example: 'class TimedRedis extends Redis {',
  },
  {
    name: 'no prose of error messages is matched, only the code word of a Redis reply',
    pattern:
      /\.message\.(?:startsWith|includes|endsWith|match)\(\s*['"`](?![A-Z]+['"`])|Stream isn't writeable|Command timed out|Connection is closed|All sentinels are|Unknown RESP type/,
    example: "error.message.includes('DB index')",
  },
  {
    name: "a package's inner files are private",
    pattern:
      /(?:\bfrom|\bimport|\bimport\(|\brequire\(|\bresolve\()\s*['"](?:@[^/'".]+\/)?[a-z][^/'":]*\/(?:[^'"]*\/)?(?:lib|dist|build|built|src)\//,
    example: "import lag from 'prom-client/lib/metrics/eventLoopLag.js'",
  },
];

const START_RULES: readonly Rule[] = [
  {
    name: 'no flags of Node or V8',
    pattern: /\bnode["']?,?\s+["']?--(?!eval\b|input-type\b)/,
    example: 'node --max-semi-space-size=8 src/cli/evalgate.js',
  },
  { name: 'no NODE_OPTIONS', pattern: /\bNODE_OPTIONS\b/, example: 'ENV NODE_OPTIONS=--jitless' },
  {
    name: 'no variables of an allocator',
    pattern: /\bMALLOC_\w+|\bLD_PRELOAD\b|jemalloc|tcmalloc/,
    example: 'ENV MALLOC_ARENA_MAX=1',
  },
];

interface Text {
  readonly path: string;
  readonly text: string;
}

const code = textsBelow('src', /\.(?:ts|js)$/);
const start = [
  ...['package.json', 'Dockerfile', 'docker-compose.yml', 'src/cli/evalgate.js'].map(textOf),
  ...textsBelow('deploy', /\.ya?ml$/),
];

function textOf(path: string): Text {
  return { path, text: readFileSync(join(ROOT, path), 'utf8') };
}

function textsBelow(folder: string, named: RegExp): readonly Text[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => named.test(path))
    .toSorted()
    .map((path) => textOf(`${folder}/${path}`));
}

/** As `file:line: text`. */
function hitsIn(texts: readonly Text[], { pattern }: Rule): readonly string[] {
  return texts.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, at) => (pattern.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : [])),
  );
}

describe.each([
  { of: 'src', rules: CODE_RULES, texts: code },
  { of: 'the ways to start', rules: START_RULES, texts: start },
])('$of', ({ rules, texts }) => {
  test('is read whole', () => {
    expect(texts.length).toBeGreaterThan(10);
  });

  test.each(rules)('$name', (rule) => {
    expect(rule.pattern.test(rule.example)).toBe(true);
    expect(hitsIn(texts, rule)).toEqual([]);
  });
});
