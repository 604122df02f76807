import { defineConfig } from 'vitest/config';

/**
 * Two kinds of tests, one after the other, and the bars apart from both. CPU-bound tests use all cores; tests that run
 * processes, servers and browsers mostly wait, so they leave one core to those. `npm run prove` runs the bars.
 */
export default defineConfig({
  test: {
    reporters: ['default', './test/support/summary-reporter.ts'],
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
          include: ['test/{unit,http,cli,openapi}/**/*.test.ts'],
          maxWorkers: '100%',
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          include: ['test/{contract,integration,faults,tracing,browser}/**/*.test.ts'],
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
