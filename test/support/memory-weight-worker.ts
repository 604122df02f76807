/**
 * Fills a memory tier with evaluations and prints what it takes them to weigh and what the process holds more of, as JSON.
 * Usage: node --expose-gc memory-weight-worker.ts STRENGTHS, the number of texts that make each evaluation longer.
 */
import { Derivation, Entry } from '../../src/cache/entry.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { evaluationQuestion } from '../../src/cache/question.ts';
import { tagsOf } from '../../src/cache/stored.ts';
import { toCall } from '../../src/domain/call.ts';
import { evaluationSchema } from '../../src/domain/records.ts';
import { Representation } from '../../src/http/representation.ts';
import { anEvaluation } from './records.ts';

const ENTRIES = 4000;
const FILLED_AT_MS = 1_772_600_767_089;
const strengths = Number(process.argv[2]);

function heldBytes(): number {
  if (global.gc === undefined) throw new Error('to be run with --expose-gc');
  global.gc();
  global.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** As the store sends it: every text is one of its own. */
function textOf(id: string): string {
  const categoryScores = Array.from({ length: strengths }, (_, index) => ({
    key: `category_${index}`,
    label: `What the ${index}th category is called`,
    value: index,
  }));
  return JSON.stringify(anEvaluation({ _id: id, ...(strengths > 0 && { categoryScores }) }));
}

const tier = new MemoryTier({ maxBytes: 1_000_000_000 });
const forms = new Derivation<Representation>((form) => form.weightBytes);
const before = heldBytes();
for (let index = 0; index < ENTRIES; index += 1) {
  const question = evaluationQuestion(`ev_${index}`);
  const text = textOf(`ev_${index}`);
  const record = evaluationSchema.parse(JSON.parse(text));
  const answer = { kind: 'found', record, etag: `"${index}"`, bytes: text.length } as const;
  const filledAtMs = FILLED_AT_MS + index;
  const entry = new Entry(answer, filledAtMs);
  const position = { history: 'one', sequence: 1 };
  tier.set(question.key, {
    kind: 'evaluation',
    entry,
    tags: tagsOf(question, entry),
    position,
    fetchedAtMs: filledAtMs + 100,
  });
  forms.of(entry, () => new Representation({ call: toCall(record) }));
}
process.stdout.write(JSON.stringify({ weighedBytes: tier.usage().bytes, heldBytes: heldBytes() - before }));
