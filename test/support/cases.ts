/** How many random cases a property is tried with: `npm run prove` tries many times as many as `npm test`. */
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Given in vitest.config.ts, per project. */
    thoroughness: number;
  }
}

export function cases(count: number): number {
  return count * inject('thoroughness');
}
