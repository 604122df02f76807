import { defineConfig } from 'vitest/config';

/** Properties of random cases: `npm run prove` tries more of them. */
const MODELS = [
  'test/integration/cache-{interleavings,oracle,probes}.test.ts',
  'test/http/common/{isolation,rate-limit-walk}.test.ts',
  'test/openapi/public-forms.test.ts',
  'test/unit/transcript/*.test.ts',
  'test/simulation/{seeds-1,seeds-2,redis-model,quota-script}.test.ts',
];

/**
 * `npm test` runs two kinds of tests, one after the other: CPU-bound tests, and tests that run processes, servers and
 * browsers and mostly wait. A worker loads the program once for all of its files. `npm run prove` runs the third kind, the
 * bars with figures and more random cases, one file at a time; `npm run prove -- test/prove/quota.test.ts` runs one file.
 */
export default defineConfig({
  test: {
    reporters: ['default', './test/support/summary-reporter.ts', './test/prove/table-reporter.ts'],
    globalSetup: './test/support/redis/source.ts',
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // The message of a failed bar holds what was measured.
    chaiConfig: { truncateThreshold: 500 },
    projects: [
      {
        extends: true,
        test: {
          name: 'logic',
          include: ['test/{unit,http,cli,openapi,simulation}/**/*.test.ts'],
          maxWorkers: '100%',
          isolate: false,
          provide: { thoroughness: 1 },
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          include: ['test/{contract,integration,faults,tracing,browser}/**/*.test.ts'],
          maxWorkers: '100%',
          isolate: false,
          provide: { thoroughness: 1 },
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'prove',
          include: ['test/prove/**/*.test.ts', ...MODELS],
          provide: { thoroughness: 10 },
          fileParallelism: false,
          maxWorkers: 1,
          testTimeout: 900_000,
          // What a model holds is measured after a collection.
          execArgv: ['--expose-gc'],
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
