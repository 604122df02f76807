/**
 * Prints what transcripts cost, and exits with status 1 if a bar is missed.
 * Usage: node test/bench/transcript.ts [--json] [--hostile-units N] [--rounds N] [--slack X]: one JSON document instead of
 * tables; the size of the hostile bodies; how often each thing is measured; by what the bars are multiplied.
 */
import { parseArgs } from 'node:util';
import { BODY_UNITS, missedBars } from './transcript-bars.ts';
import { measureCosts } from './transcript-costs.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    'hostile-units': { type: 'string', default: String(BODY_UNITS) },
    rounds: { type: 'string', default: '30' },
    slack: { type: 'string', default: '1' },
  },
});
const hostileUnits = Number(values['hostile-units']);
const costs = await measureCosts({ hostileUnits, rounds: Number(values.rounds) });
const missed = missedBars(costs, Number(values.slack));
if (values.json) {
  process.stdout.write(JSON.stringify({ costs, missed }));
} else {
  const size = `${BODY_UNITS / 1e6} MB`;
  console.log(`Parsing, ${size}, and a tenth of it (small)`);
  console.table(costs.parsing);
  console.log(`Pages of a speaker_text of ${size}: turns a page x characters a page`);
  console.table(costs.paging);
  console.log(`Hostile bodies of ${hostileUnits / 1e6} MB, one after another in one process`);
  console.table(costs.hostile);
}
for (const what of Object.values(missed).flat()) {
  console.error(`missed: ${what}`);
  process.exitCode = 1;
}
