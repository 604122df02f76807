/** Changes of keys by an operator, through the admin listener. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { hashToken } from '../../../src/keys/token.ts';
import type { Reply, TestGateway } from '../../support/gateway.ts';
import type { Subject } from './subject.ts';

async function must(done: Promise<Reply>): Promise<Reply> {
  const reply = await done;
  if (reply.status >= 300) throw new Error(`the admin listener refused: ${reply.text}`);
  return reply;
}

export async function deprecateKey(gateway: TestGateway, keyId: string): Promise<void> {
  await must(gateway.admin('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' }));
}

export async function activateKey(gateway: TestGateway, keyId: string): Promise<void> {
  await must(gateway.admin('PATCH', `/api/keys/${keyId}`, { status: 'active' }));
}

export async function revokeKey(gateway: TestGateway, keyId: string): Promise<void> {
  await must(gateway.admin('DELETE', `/api/keys/${keyId}`));
}

const rotatedSchema = z.object({ token: z.string() });

/** The successor's token. */
export async function rotateKey(gateway: TestGateway, keyId: string, overlap: string): Promise<string> {
  const reply = await must(gateway.admin('POST', `/api/keys/${keyId}/rotate`, { overlap }));
  return rotatedSchema.parse(reply.json).token;
}

/** Takes over a key of another form, by its hash. */
export async function importKey(gateway: TestGateway, subject: Subject, token: string): Promise<void> {
  const key = {
    keyId: `imported-${randomUUID()}`,
    hash: hashToken(token),
    name: 'imported',
    workspaceIds: [subject.workspaceId],
    scopes: ['reports.read', 'calls.read', 'coaching.read'],
  };
  await must(gateway.admin('POST', '/api/keys/import', { keys: [key] }));
}

const HOUR_MS = 3_600_000;

/** An ISO time that many hours from the gateway's now. */
export function inHours(gateway: TestGateway, hours: number): string {
  return new Date(gateway.clock.nowMs() + hours * HOUR_MS).toISOString();
}
