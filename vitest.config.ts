import { defineConfig } from 'vitest/config';

/**
 * Two kinds of tests, one after the other: what only computes or talks to itself takes all cores; what runs processes,
 * servers and browsers, and so waits more than it computes, leaves one of them to those.
 */
export default defineConfig({
  test: {
    reporters: ['default', './test/support/summary-reporter.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // What a bar's row measured stands in its message.
    chaiConfig: { truncateThreshold: 500 },
    projects: [
      {
        extends: true,
        test: {
          name: 'logic',
          include: ['test/{unit,http,openapi}/**/*.test.ts'],
          maxWorkers: '100%',
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          include: ['test/{contract,integration,faults,tracing,browser}/**/*.test.ts'],
          // A machine that stands still for a second is no fault of what is tested. Whatever needed it is told at the end.
          retry: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
