/** An authority made for a test, and a certificate of it for this machine. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NAMES = 'subjectAltName=IP:127.0.0.1,DNS:localhost';

/** Null if there is no openssl to make them with. */
export async function makeTlsFiles() {
  const directory = await mkdtemp(join(tmpdir(), 'evalgate-tls-'));
  const path = (name: string): string => join(directory, name);
  const [ca, caKey, cert, key] = [path('ca.pem'), path('ca.key'), path('cert.pem'), path('cert.key')];
  const newKey = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  try {
    await run('openssl', [...newKey, '-subj', '/CN=evalgate test authority', ...filesOf(ca, caKey)]);
    const signed = ['-subj', '/CN=localhost', '-addext', NAMES, '-CA', ca, '-CAkey', caKey];
    await run('openssl', [...newKey, ...signed, ...filesOf(cert, key)]);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  return { ca, cert, key, remove: () => rm(directory, { recursive: true, force: true }) };
}

function filesOf(certificate: string, key: string): string[] {
  return ['-keyout', key, '-out', certificate];
}
