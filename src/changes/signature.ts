/** Announcements that the store signs, as Standard Webhooks has it: whoever knows the secret needs no token. */
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

/** The headers of a signed call. */
export interface SignatureHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

/** The id of a webhook, signed or not: visible ASCII. */
export const WEBHOOK_ID = /^[\x21-\x7e]{1,256}$/;

/**
 * Null if one of the secrets has made the signature within the last five minutes; else why not, for the caller. `bytes`: the
 * body as it was sent.
 */
export function signatureFault(secrets: readonly string[], headers: SignatureHeaders, bytes: Buffer): string | null {
  let fault = 'no secret is set';
  for (const secret of secrets) {
    try {
      new Webhook(secret).verify(bytes, { ...headers }, { jsonParse: false });
      return null;
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      fault = error.message;
    }
  }
  return fault;
}

/** The headers of a call that is signed with that secret. `body`: as it is sent. */
export function sign(secret: string, id: string, at: Date, body: string): Record<keyof SignatureHeaders, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
}
