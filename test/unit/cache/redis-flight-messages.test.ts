import { expect, test } from 'vitest';
import { readFailure, readFlightMessage, writeFailure } from '../../../src/cache/redis-flight-messages.ts';
import { WORKSPACE_B } from '../../support/records.ts';

const failure = { kind: 'malformed', message: 'wrong at title', retryAfterMs: null, status: 200 } as const;

test('a failure travels with the workspace of the record that it is about', () => {
  const told = { ...failure, workspaceId: WORKSPACE_B };
  expect(readFailure(writeFailure(told))).toEqual(told);
});

test('a failure told by a release that knows no workspaces is of none', () => {
  const message = JSON.stringify({ end: 'failed', sender: 's', key: 'k', failure });
  expect(readFlightMessage(message)).toMatchObject({ failure: { ...failure, workspaceId: null } });
  expect(readFailure(JSON.stringify(failure))).toEqual({ ...failure, workspaceId: null });
});
