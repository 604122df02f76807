/** What `npm start` gives to the process, so that what is tested and measured runs as it is run for real. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const PACKAGE = join(import.meta.dirname, '../../package.json');
const packageSchema = z.object({ scripts: z.object({ start: z.string() }) });

export interface StartSettings {
  /** Node's. */
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export function startSettings(): StartSettings {
  const { scripts } = packageSchema.parse(JSON.parse(readFileSync(PACKAGE, 'utf8')));
  const words = scripts.start.split(' ');
  const variables = words
    .filter((word) => /^[A-Z_]+=/.test(word))
    .map((word): [string, string] => {
      const [name = '', value = ''] = word.split('=');
      return [name, value];
    });
  return { flags: words.filter((word) => word.startsWith('--')), env: Object.fromEntries(variables) };
}
