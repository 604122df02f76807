/** Prints the bars of a run as one Markdown table, and writes it to `coverage/prove.md`. Prints nothing if there are none. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import type { Bar } from './bar.ts';
import { describeMachine } from './machine.ts';
import { tableOf } from './table.ts';

const FOLDER = join(import.meta.dirname, '../../coverage');

export default class TableReporter implements Reporter {
  readonly #machine = describeMachine();

  onTestRunEnd(modules: readonly TestModule[]): void {
    const bars = modules.filter(({ project }) => project.name === 'prove').flatMap(barsOf);
    if (bars.length === 0) return;
    const table = tableOf(bars);
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(join(FOLDER, 'prove.md'), `${this.#machine}\n\n${table}\n`);
    // For a test that runs others and takes over their bars.
    const file = process.env['PROVE_JSON'] ?? '';
    if (file !== '') writeFileSync(file, JSON.stringify(bars));
    const missed = bars.filter(({ ok }) => !ok).length;
    process.stdout.write(`\n${this.#machine}\n\n${table}\n\n${bars.length} bars, ${missed} missed\n`);
  }
}

/** A test that failed before it had measured anything is a bar that is missed. */
function barsOf(module: TestModule): readonly Bar[] {
  return [...module.children.allTests()].flatMap((test): readonly Bar[] => {
    const { bars = [] } = test.meta();
    const { state, errors = [] } = test.result();
    if (bars.length > 0 || state !== 'failed') return bars;
    const [reason = ''] = errors[0]?.message.split('\n') ?? [];
    return [{ name: test.fullName, bar: '', measured: `failed: ${reason}`, ok: false }];
  });
}
