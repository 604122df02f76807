/**
 * Whether the store's address leads anywhere, before a call shows it. The address is resolved and connected to, with a
 * handshake of TLS if it begins with https. Nothing is sent there (C7: the store gets nothing but reads and refreshes).
 */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Timers } from '../time/timers.ts';

const TIMEOUT_MS = 5000;
/** A store that is started after the gateway is found so late. */
const AGAIN_AFTER_MS = 10_000;

const WORDS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the host of UPSTREAM_URL is not known',
  EAI_AGAIN: 'the host of UPSTREAM_URL cannot be looked up',
  ECONNREFUSED: 'nothing listens at the address of UPSTREAM_URL',
  ETIMEDOUT: 'the address of UPSTREAM_URL takes no connection',
  EPROTO: 'UPSTREAM_URL begins with https, and no TLS is spoken there',
  ERR_SSL_WRONG_VERSION_NUMBER: 'UPSTREAM_URL begins with https, and no TLS is spoken there',
};

interface ReachabilityOptions {
  /** The base address of the store. */
  readonly url: string;
  readonly timers: Timers;
  /** Takes why it cannot be reached, null if it can. Returns whether it is to be tried again. Must not throw. */
  readonly onTried: (failure: string | null) => boolean;
}

/** Tries once, and again every ten seconds as long as `onTried` says. Returns what ends it. */
export function lookForStore({ url, timers, onTried }: ReachabilityOptions): () => void {
  const ended = new AbortController();
  let cancel: (() => void) | null = null;
  const look = async (): Promise<void> => {
    const failure = await tryToConnect(url, ended.signal);
    if (!ended.signal.aborted && onTried(failure)) cancel = timers.after(AGAIN_AFTER_MS, () => void look());
  };
  void look();
  return () => {
    ended.abort();
    cancel?.();
  };
}

/** Why no connection comes about, in words that do not hold the address; null if one does. Never rejects. */
function tryToConnect(url: string, signal: AbortSignal): Promise<string | null> {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const isTls = protocol === 'https:';
  const address = { host, port: Number(port) || (isTls ? 443 : 80) };
  return new Promise((resolve) => {
    const socket: Socket = isTls
      ? connectTls({ ...address, ...(isIP(host) === 0 && { servername: host }) })
      : connect(address);
    const end = (failure: string | null): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(failure);
    };
    const onAbort = (): void => end(null);
    signal.addEventListener('abort', onAbort);
    socket.setTimeout(TIMEOUT_MS, () => end(describe('ETIMEDOUT')));
    socket.on('error', (error: NodeJS.ErrnoException) => end(describe(error.code ?? error.name)));
    socket.on(isTls ? 'secureConnect' : 'connect', () => end(null));
  });
}

function describe(code: string): string {
  const isOfCertificate = /CERT|SIGNED|VERIFY|ISSUER/.test(code);
  const other = isOfCertificate
    ? "the store's certificate is not accepted"
    : 'no connection to the address of UPSTREAM_URL comes about';
  return `${WORDS[code] ?? other} (${code})`;
}
