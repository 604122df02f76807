/**
 * Who may import whom in `src`, held by `npm run lint:imports`; type-only and dynamic imports count. `docs/architecture.md`
 * says what each folder is for.
 */

/** A folder imports only from the floors below its own: neither from above nor from beside it. */
const FLOORS = [
  ['cli'],
  ['cluster'],
  ['gateway.ts'],
  ['backend'],
  ['http', 'admin'],
  ['telemetry'],
  ['operations'],
  ['changes'],
  ['cache'],
  ['upstream', 'config', 'keys', 'quota'],
  ['journal'],
  ['redis', 'transcript', 'sample', 'tracing'],
  ['domain', 'log', 'server', 'version.ts'],
  ['shares', 'time'],
];

/** Libraries, and the only files that know them. */
const LIBRARIES = {
  'koa|koa-compose': '^src/(http|admin)/',
  '@koa/router': '^src/(http|admin)/',
  ioredis: '^src/(redis|backend)/|redis[^/]*$',
  got: '^src/upstream/client[.]ts$',
  'prom-client': '^src/telemetry/',
  'rate-limiter-flexible': '^src/keys/request-limiter[.]ts$',
  'pino|pino-pretty': '^src/log/',
  commander: '^src/cli/',
  standardwebhooks: '^src/changes/signature[.]ts$',
  yaml: '^src/config/',
  'preact|htm': '^src/admin/dashboard/page/',
  '@opentelemetry/api': '^src/tracing/|-spans?[.]ts$',
  '@opentelemetry/(?!api/)[^/]+': '^src/tracing/sdk[.]ts$',
};

/** How the picture in docs/architecture.md looks. */
const PICTURE = {
  replace: true,
  graph: { rankdir: 'LR', bgcolor: 'white', color: 'white', fontname: 'Helvetica', fontsize: 12 },
  node: {
    shape: 'box',
    style: 'rounded,filled',
    fillcolor: '#eaf1f9',
    color: '#4c6f9c',
    fontname: 'Helvetica',
    fontsize: 11,
  },
  edge: { color: '#4c6f9c', arrowsize: 0.6 },
};

/** @type {(...floors: string[][]) => string} A group of the pattern is the folder's name, `$1` in `pathNot`. */
const foldersOf = (...floors) => `^src/(${floors.flat().join('|')})(?=/|$)`;

/** @type {(name: string, from: object, to: object) => object} */
const forbid = (name, from, to) => ({ name, severity: 'error', from, to });

export default {
  forbidden: [
    ...FLOORS.map((floor, at) => {
      const above = { path: foldersOf(...FLOORS.slice(0, at + 1)), pathNot: '^src/$1(?=/|$)' };
      return forbid(`${floor.join(', ')}: only floors below`, { path: foldersOf(floor) }, above);
    }),
    forbid('each folder has a floor', {}, { path: '^src/', pathNot: foldersOf(...FLOORS) }),
    forbid('no circles', {}, { circular: true }),
    ...Object.entries(LIBRARIES).map(([library, rooms]) =>
      forbid(`${library}: only ${rooms}`, { pathNot: rooms }, { path: `(^|/)node_modules/(${library})/` }),
    ),
    forbid('domain and transcript do no I/O', { path: '^src/(domain|transcript)/' }, { dependencyTypes: ['core'] }),
    forbid('v1 and v2 stay apart', { path: '^src/http/(v1|v2)[.]ts$' }, { path: '^src/http/(v1|v2)[.]ts$' }),
    forbid(
      'the OpenTelemetry SDK loads only if traces are sent',
      { pathNot: '^src/gateway' },
      { path: '^src/tracing/sdk' },
    ),
    forbid(
      'node:http in a command: only by cli/node-http.ts, which says why',
      { path: '^src/cli/' },
      { path: '^(node:)?http$', dependencyTypes: ['core'], dependencyTypesNot: ['type-only'] },
    ),
    forbid('no development tool in src', {}, { dependencyTypes: ['npm-dev'] }),
    forbid('each import leads to a file', {}, { couldNotResolve: true }),
  ],
  options: {
    // dependency-cruiser does not know TypeScript 7: without this parser it finds no module, and so no fault.
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['node', 'import'] },
    reporterOptions: { dot: { theme: PICTURE } },
  },
};
