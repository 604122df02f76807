/** `evalgate cache top`: the keys and routes that cost the store most. */
import type { Command } from 'commander';
import { z } from 'zod';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, integerBetween, makeCommand } from '../command.ts';
import { columns, printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

const load = { storeCalls: z.number(), storeMs: z.number() };
const topSchema = z.looseObject({
  since: z.string(),
  keys: z.array(z.looseObject({ key: z.string(), class: z.string(), ...load })),
  routes: z.array(z.looseObject({ route: z.string().nullable(), ...load })),
});

type Top = z.output<typeof topSchema>;

const MOST = 100;

export function topCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'top',
      summary: 'show the keys and routes for which the store had to work most',
      details: [
        'Of one gateway process, and of the last 30 to 60 minutes. STORE MS is the time that its calls to the store took,',
        'all together. STORE CALLS counts questions to the store, each once however often it had to be tried; `cache stats`',
        'counts every call that was sent, retries too, so its numbers can be higher. A searched list is shown by its hash.',
      ].join('\n'),
      examples: ['evalgate cache top', "evalgate cache top --limit 5 --json | jq '.keys[].key'"],
    },
    terminal,
  );
  return withAdminOption(command, terminal)
    .option('--limit <number>', 'how many keys, and how many routes', integerBetween(1, MOST), 20)
    .action(async () => {
      const { limit } = command.opts<{ limit: number }>();
      const path = `/api/cache/top?limit=${limit}`;
      const top = await adminClientOf(command, terminal).call({ method: 'GET', path, answer: topSchema });
      answer(terminal, command, { document: top, text: topText(top) });
    });
}

function topText({ since, keys, routes }: Top): string {
  const heading = `Calls to the store since ${printable(since)}.`;
  if (keys.length === 0) return `${heading} There were none.`;
  return [
    heading,
    columns([
      ['ROUTE', 'STORE CALLS', 'STORE MS'],
      ...routes.map((row) => [row.route ?? '(no request)', ...cells(row)]),
    ]),
    columns([['KEY', 'CLASS', 'STORE CALLS', 'STORE MS'], ...keys.map((row) => [row.key, row.class, ...cells(row)])]),
  ].join('\n\n');
}

function cells({ storeCalls, storeMs }: Pick<Top['keys'][number], 'storeCalls' | 'storeMs'>): string[] {
  return [String(storeCalls), String(storeMs)];
}
