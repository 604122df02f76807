/** A4: every error has a code of the catalogue in docs/api.md. */
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { ERROR_CODES, type ErrorCode } from '../../../src/http/problem.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { GET_CALL, LIST_CALLS, LIST_REPORTS } from './endpoints.ts';
import { revokeKey } from './keys.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

function expectCode(reply: Reply, code: ErrorCode): void {
  expect([reply.status, reply.headers['x-error-code']]).toEqual([ERROR_CODES[code].status, code]);
}

test('400: what is wrong with the address', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  expectCode(await gateway.get(`${LIST_CALLS.path(subject)}?page=0`, { key }), 'parameter_invalid');
  expectCode(await gateway.get(`${LIST_REPORTS.path(subject)}?scorecardId=x`, { key }), 'parameter_invalid');
  expectCode(await gateway.get(`${LIST_CALLS.path(subject)}?search=${'x'.repeat(9000)}`, { key }), 'address_too_long');
});

test('401: no key, or none that was issued', async () => {
  const subject = putSubject(gateway.store);
  const path = GET_CALL.path(subject);
  expectCode(await gateway.get(path), 'key_missing');
  expectCode(await gateway.get(path, { headers: { authorization: 'Bearer ' } }), 'key_missing');
  expectCode(await gateway.get(path, { headers: { authorization: 'Basic abc' } }), 'key_invalid');
  expectCode(await gateway.get(path, { key: 'evg_nobody' }), 'key_invalid');
});

test('403: a key that ended, lacks the scope, or may not see the workspace', async () => {
  const subject = putSubject(gateway.store);
  const { keyId, token } = await gateway.issue({ workspaceIds: [subject.workspaceId] });
  await revokeKey(gateway, keyId);
  expectCode(await gateway.get(GET_CALL.path(subject), { key: token }), 'key_inactive');

  const narrow = await keyFor(gateway, subject, { scopes: ['coaching.read'] });
  expectCode(await gateway.get(GET_CALL.path(subject), { key: narrow }), 'scope_missing');
  expectCode(await gateway.get(LIST_REPORTS.path(subject), { key: narrow }), 'scope_missing');

  const key = await keyFor(gateway, subject);
  expectCode(await gateway.get(LIST_REPORTS.path(newSubject()), { key }), 'workspace_forbidden');
  expectCode(await gateway.get(`/v2/calls?workspaceId=${newSubject().workspaceId}`, { key }), 'workspace_forbidden');
});

test('404: the same for a record of another workspace as for none (K7)', async () => {
  const foreign = putSubject(gateway.store);
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  expectCode(await gateway.get(GET_CALL.path(foreign), { key }), 'not_found');
  expectCode(await gateway.get(GET_CALL.path(newSubject()), { key }), 'not_found');
  expectCode(await gateway.get('/v2/nothing', { key, isUndocumented: true }), 'path_unknown');
  expectCode(await gateway.get('/nothing', { isUndocumented: true }), 'path_unknown');
});

test('405 and 429', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject, { perMinute: 1 });
  expectCode(await gateway.get(GET_CALL.path(subject), { key, method: 'POST' }), 'method_not_allowed');
  expectCode(await gateway.get(GET_CALL.path(subject), { key }), 'rate_limited');
});

test('500: which part failed', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  gateway.store.evaluations.set(subject.id, { _id: subject.id, workspaceId: subject.workspaceId });
  expectCode(await gateway.get(GET_CALL.path(subject), { key }), 'record_malformed');
});

test('a 200 has none', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  expect((await gateway.get(GET_CALL.path(subject), { key })).headers['x-error-code']).toBeUndefined();
});
