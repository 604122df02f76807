/** What a test asks of a gateway process's key registry, and what it is answered. Between processes, so it is checked. */
import { z } from 'zod';

export const keyCommandSchema = z.discriminatedUnion('name', [
  /** Issues a key. */
  z.object({ name: z.literal('create') }),
  /** Until the process hears of changes. */
  z.object({ name: z.literal('hear') }),
  /** Until the process holds the key in its memory and lets it in. */
  z.object({ name: z.literal('know'), hash: z.string() }),
  /** Looks the key up again and again from now on; answered at once. */
  z.object({ name: z.literal('watch'), hash: z.string() }),
  /** Until it is known as revoked. */
  z.object({ name: z.literal('refused') }),
  /** What the process knows of the key now; null where there is none. */
  z.object({ name: z.literal('status'), hash: z.string() }),
  z.object({ name: z.literal('revoke'), keyId: z.string() }),
]);
export type KeyCommand = z.output<typeof keyCommandSchema>;

export const createdSchema = z.object({ keyId: z.string(), hash: z.string() });
/** Times are Unix milliseconds, which all processes of a machine share, finer than Date.now. */
export const revokedSchema = z.object({ sinceMs: z.number() });
/** When the key was first known as revoked. */
export const refusedSchema = z.object({ refusedAtMs: z.number() });
export const statusSchema = z.string().nullable();
