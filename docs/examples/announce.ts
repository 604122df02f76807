/**
 * Announces changes to evalgate, and sends them again until they are taken. Needs Node.js 24 and no package.
 *
 *     EVALGATE_ADMIN_URL=http://127.0.0.1:8081 CHANGES_SECRET=whsec_... node announce.ts '[{"evaluation": "...", "workspace": "..."}]'
 */
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const { EVALGATE_ADMIN_URL = 'http://127.0.0.1:8081', CHANGES_SECRET = '' } = process.env;
const SECRET = Buffer.from(CHANGES_SECRET.replace(/^whsec_/, ''), 'base64');

/** Resolves once the changes are in force in every gateway. Rejects for a fault that another try does not mend. */
async function announce(changes: readonly object[]): Promise<void> {
  const body = JSON.stringify({ changes });
  const id = `msg_${randomUUID()}`;
  for (let delayMs = 1000; ; delayMs = Math.min(60_000, 2 * delayMs)) {
    const response = await send(id, body).catch(() => null);
    if (response?.ok === true) return;
    // Without an answer it is not known whether it was taken: the same again, with the same id, does no harm.
    if (response !== null && response.status < 500) throw new Error(`${response.status}: ${await response.text()}`);
    await sleep(delayMs);
  }
}

/** Signed as Standard Webhooks has it. */
function send(id: string, body: string): Promise<Response> {
  const at = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', SECRET).update(`${id}.${at}.${body}`).digest('base64');
  return fetch(`${EVALGATE_ADMIN_URL}/api/changes`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': at,
      'webhook-signature': `v1,${signature}`,
    },
    body,
    signal: AbortSignal.timeout(5000),
  });
}

await announce(JSON.parse(process.argv[2] ?? '[]'));
