/** How a member of a store's record differs from what the interface promises. */
import { z } from 'zod';

/**
 * The fault of a member: what was found and what is expected there; null if the schema finds none. Says the type of the
 * value, never the value. `path`: leads to the member, such as `people.0.spoke`; without it, the first faulty one.
 */
export function memberFault(schema: z.ZodType, value: unknown, path?: string): string | null {
  const { error } = schema.safeParse(value, { reportInput: true });
  const issue = error?.issues.find((one) => path === undefined || one.path.join('.') === path);
  return issue === undefined ? null : `found ${typeText(issue.input)}, expected ${expectedText(issue)}`;
}

function typeText(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value !== 'string') return typeof value;
  if (value === '') return 'empty string';
  return z.iso.datetime({ offset: true, local: true }).safeParse(value).success ? 'string (an ISO time)' : 'string';
}

function expectedText(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return issue.expected;
  if (issue.code === 'invalid_value') return issue.values.map((value) => JSON.stringify(value)).join(' or ');
  return issue.code === 'invalid_format' ? `the form ${issue.format}` : `another value (${issue.message})`;
}
