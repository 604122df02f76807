/**
 * The last lines of a test run: which tests passed only when they were tried again, and how many passed and failed, alone
 * on a line, for whoever reads only that.
 */
import type { Reporter, TestModule } from 'vitest/node';

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    const flaky: string[] = [];
    for (const module of modules) {
      failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const { state, errors = [] } = test.result();
        if (state === 'passed') passed++;
        if (state === 'failed') failed++;
        if (test.diagnostic()?.flaky !== true) continue;
        const [error] = errors;
        const place = error?.stacks?.[0];
        const reason = `${error?.message} (line ${place?.line})`;
        flaky.push(`${module.relativeModuleId}: ${test.fullName}: ${reason}`);
      }
    }
    for (const name of flaky) process.stdout.write(`\npassed only when tried again: ${name}`);
    process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
  }
}
