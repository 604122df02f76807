import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { evaluationSchema, scorecardSchema, transcriptSchema } from '../../../src/domain/records.ts';
import { FAULT_OPTIONS, FaultOptionError, NO_FAULTS, parseFaults } from '../../../src/sample/index.ts';
import type { Faults, SampleCallLog } from '../../../src/sample/index.ts';
import { json } from '../../contract/upstream-interface/http-get.ts';
import { startSample } from './rig.ts';

/** Reads until so many bytes are there, and gives them; the rest is left where it is. */
async function readSome(response: IncomingMessage, bytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length < bytes) return;
      response.pause();
      resolve(Buffer.concat(chunks));
    });
    response.once('end', () => reject(new Error('the body ended')));
    response.once('error', reject);
  });
}

/** The statuses of sixty calls to a store that fails three of ten. */
async function callSixtyTimes(): Promise<number[]> {
  const { read } = await startSample({ faults: { errorRate: 0.3 } });
  const statuses: number[] = [];
  for (let i = 0; i < 60; i += 1) statuses.push((await read('/evaluations/nobody')).status);
  return statuses;
}

describe('a fault on the wire', () => {
  test.each([
    [400, 'BAD_REQUEST'],
    [401, 'UNAUTHENTICATED'],
    [404, 'FAULT'],
    [429, 'RATE_LIMITED'],
    [500, 'INTERNAL'],
    [502, 'BAD_GATEWAY'],
    [503, 'UNAVAILABLE'],
    [504, 'FAULT'],
  ])('status %i has the code %s', async (status, code) => {
    const { read, ids } = await startSample({ faults: { status } });
    const response = await read(`/evaluations/${ids.callId}`);
    expect(response.status).toBe(status);
    expect(json(response)).toEqual({ code, message: 'the store was told to fail' });
    expect(response.headers['retry-after']).toBeUndefined();
  });

  test.each([
    [429, '7'],
    [503, '7'],
    [500, '7'],
    [404, undefined],
  ])('status %i with retryAfter has Retry-After %s', async (status, expected) => {
    const { read, ids } = await startSample({ faults: { status, retryAfter: 7 } });
    expect((await read(`/evaluations/${ids.callId}`)).headers['retry-after']).toBe(expected);
  });

  test('errorRate fails its share of the calls, the same ones in every run', async () => {
    const statuses = await callSixtyTimes();
    const failed = statuses.filter((status) => status === 500).length;
    expect(failed).toBeGreaterThan(8);
    expect(failed).toBeLessThan(30);
    expect(statuses.filter((status) => status === 404)).toHaveLength(60 - failed);
    expect(await callSixtyTimes()).toEqual(statuses);
  });

  test('resetRate breaks the connection before any answer', async () => {
    const calls: SampleCallLog[] = [];
    const { read, ids } = await startSample({ faults: { resetRate: 1 }, log: (call) => calls.push(call) });
    await expect(read(`/evaluations/${ids.callId}`)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(calls.map(({ status, finished }) => ({ status, finished }))).toEqual([{ status: 0, finished: false }]);
  });

  test('hangRate stops half-way through the body and goes no further until it is closed', async () => {
    const { open, upstream, data, ids } = await startSample({ faults: { hangRate: 1 } });
    const whole = Buffer.from(JSON.stringify(data.transcript(ids.callId)));
    const response = await open(`/evaluations/${ids.callId}/transcript`, { 'accept-encoding': 'gzip' });
    expect(response.headers['content-length']).toBe(String(whole.length));
    const half = await readSome(response, Math.ceil(whole.length / 2));
    expect(half.equals(whole.subarray(0, Math.ceil(whole.length / 2)))).toBe(true);
    const ended = new Promise((resolve) => response.once('error', resolve));
    response.resume();
    await upstream.close();
    expect(await ended).toMatchObject({ code: 'ECONNRESET' });
  });

  test('htmlRate answers 200 with a page', async () => {
    const { read, ids } = await startSample({ faults: { htmlRate: 1 } });
    const response = await read(`/evaluations/${ids.callId}`);
    expect([response.status, response.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(response.body.toString()).toMatch(/^<!doctype html>/);
  });

  test('truncateRate answers 200 with the first half of the JSON and says that it is all', async () => {
    const { read, data, ids } = await startSample({ faults: { truncateRate: 1 } });
    const whole = JSON.stringify(data.evaluation(ids.callId));
    const response = await read(`/evaluations/${ids.callId}`, { 'accept-encoding': 'gzip' });
    expect(response.status).toBe(200);
    expect(response.body.length).toBe(Math.ceil(Buffer.byteLength(whole) / 2));
    expect(Buffer.from(whole).subarray(0, response.body.length).equals(response.body)).toBe(true);
    expect(() => json(response)).toThrow(SyntaxError);
  });

  test('deepRate answers 200 with valid JSON 20,000 levels deep', async () => {
    const { read, ids } = await startSample({ faults: { deepRate: 1 } });
    const response = await read(`/evaluations?workspaceId=${ids.workspaceId}`);
    expect(response.status).toBe(200);
    let depth = 0;
    let level: unknown = z.object({ items: z.unknown() }).parse(json(response)).items;
    while (Array.isArray(level)) {
      level = level[0];
      depth += 1;
    }
    expect(depth).toBe(20_000);
  });

  test('endless never ends its body', async () => {
    const { open, ids } = await startSample({ faults: { endless: true } });
    const response = await open(`/evaluations/${ids.callId}`);
    expect([response.statusCode, response.headers['content-length']]).toEqual([200, undefined]);
    const start = await readSome(response, 20_000_000);
    expect(start.subarray(0, 12).toString()).toBe('{"items":[  ');
    response.destroy();
  });

  test('gzipBomb sends some 100 kB that unpack to 100 MB', async () => {
    const { read, ids } = await startSample({ faults: { gzipBomb: true } });
    const response = await read(`/evaluations/${ids.callId}`);
    expect(response.headers['content-encoding']).toBe('gzip');
    expect(response.body.length).toBeLessThan(150_000);
    const gunzip = createGunzip();
    let bytes = 0;
    gunzip.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    gunzip.end(response.body);
    await new Promise((resolve) => gunzip.once('end', resolve));
    expect(bytes).toBe(100_000_010);
  });

  test('wrongIdRate answers with the record of another id, for every read by id', async () => {
    const { read, ids, data } = await startSample({ faults: { wrongIdRate: 1 } });
    const evaluation = evaluationSchema.parse(json(await read(`/evaluations/${ids.callId}`)));
    expect(evaluation._id).not.toBe(ids.callId);
    expect(data.evaluation(evaluation._id)).not.toBe('NOT_FOUND');
    const transcript = transcriptSchema.parse(json(await read(`/evaluations/${ids.callId}/transcript`)));
    expect(transcript).toMatchObject({ evaluationId: evaluation._id, workspaceId: ids.workspaceId });
    const rubric = scorecardSchema.parse(json(await read(`/scorecards/${ids.scorecardId}`)));
    expect(rubric._id).not.toBe(ids.scorecardId);
    expect(json(await read('/evaluations/nobody'))).toMatchObject({ code: 'NOT_FOUND' });
  });

  test('wrongWorkspaceRate claims another workspace, and in a list the first record does', async () => {
    const { read, ids, data } = await startSample({ faults: { wrongWorkspaceRate: 1 } });
    const [, other] = data.workspaceIds;
    const evaluation = evaluationSchema.parse(json(await read(`/evaluations/${ids.callId}`)));
    expect([evaluation._id, evaluation.workspaceId]).toEqual([ids.callId, other]);
    const list = json(await read(`/evaluations?workspaceId=${ids.workspaceId}&limit=3`));
    const mine = { workspaceId: ids.workspaceId };
    expect(list).toMatchObject({ items: [{ workspaceId: other }, mine, mine] });
  });

  test('slowDrip sends the right body in bits of 16 bytes with a pause after each', async () => {
    const pauses: number[] = [];
    const { read, data, ids } = await startSample({
      faults: { slowDrip: true },
      sleep: (ms) => {
        pauses.push(ms);
        return Promise.resolve();
      },
    });
    const response = await read(`/evaluations/${ids.callId}`);
    expect(json(response)).toEqual(data.evaluation(ids.callId));
    expect(pauses).toEqual(Array.from({ length: Math.ceil(response.body.length / 16) }, () => 200));
  });

  test('redirect sends callers elsewhere, where nothing of the interface is', async () => {
    const { read, upstream, ids } = await startSample({ faults: { redirect: true } });
    const response = await read(`/evaluations/${ids.callId}`);
    expect([response.status, response.headers.location]).toEqual([302, `/moved/internal/v1/evaluations/${ids.callId}`]);
    expect([upstream.counts.evaluation, upstream.counts.other]).toEqual([1, 0]);
  });

  test('leaves a 304 alone, which has no body to spoil', async () => {
    const { read, upstream, ids } = await startSample();
    const { etag } = (await read(`/evaluations/${ids.callId}`)).headers;
    upstream.setFaults({ hangRate: 1 });
    expect((await read(`/evaluations/${ids.callId}`, { 'if-none-match': etag })).status).toBe(304);
  });

  test('does not let anyone in who has no token', async () => {
    const { read, ids } = await startSample({ faults: { htmlRate: 1 } });
    expect((await read(`/evaluations/${ids.callId}`, { authorization: 'Bearer no' })).status).toBe(401);
  });

  test('is in force from setFaults on, and gone with the next', async () => {
    const { read, upstream } = await startSample();
    const status = async (): Promise<number> => (await read('/evaluations/nobody')).status;
    expect(await status()).toBe(404);
    upstream.setFaults({ status: 503 });
    expect(await status()).toBe(503);
    upstream.setFaults({});
    expect(await status()).toBe(404);
  });
});

describe('reading faults from options', () => {
  test('there is an option for every fault, with a flag of the same name', () => {
    expect(FAULT_OPTIONS.map(({ name }) => name).toSorted()).toEqual(Object.keys(NO_FAULTS).toSorted());
    expect(FAULT_OPTIONS.find(({ name }) => name === 'wrongWorkspaceRate')?.flag).toBe('--wrong-workspace-rate');
    const kinds = new Map(FAULT_OPTIONS.map(({ name, kind }) => [name, kind]));
    const types = { rate: 'number', status: 'object', seconds: 'object', switch: 'boolean' };
    for (const [name, kind] of kinds) expect(typeof NO_FAULTS[name]).toBe(types[kind]);
  });

  test('none are none', () => {
    expect(parseFaults({})).toEqual(NO_FAULTS);
  });

  test('takes numbers, numbers as text and switches, and passes over what is no fault', () => {
    const expected: Faults = { ...NO_FAULTS, errorRate: 0.1, hangRate: 1, status: 503, retryAfter: 5, endless: true };
    const given = { errorRate: '0.1', hangRate: 1, status: '503', retryAfter: 5, endless: true, slowDrip: false };
    expect(parseFaults({ ...given, port: 'any', resetRate: undefined })).toEqual(expected);
  });

  test.each([
    [{ errorRate: '1.1' }, '--error-rate: "1.1" is not allowed, it must be a number from 0 to 1'],
    [{ errorRate: -0.1 }, '--error-rate: -0.1 is not allowed, it must be a number from 0 to 1'],
    [{ errorRate: 'often' }, '--error-rate: "often" is not allowed, it must be a number from 0 to 1'],
    [{ hangRate: '' }, '--hang-rate: "" is not allowed, it must be a number from 0 to 1'],
    [{ status: 399 }, '--status: 399 is not allowed, it must be an integer from 400 to 599'],
    [{ status: '600' }, '--status: "600" is not allowed, it must be an integer from 400 to 599'],
    [{ status: '404.5' }, '--status: "404.5" is not allowed, it must be an integer from 400 to 599'],
    [{ retryAfter: '-1' }, '--retry-after: "-1" is not allowed, it must be an integer from 0 to 86400'],
    [{ endless: 'yes' }, '--endless: "yes" is not allowed, it must be given without a value'],
  ])('refuses %j', (given, message) => {
    expect(() => parseFaults(given)).toThrow(new FaultOptionError(message));
  });
});
