/** An authority made for a test, and a certificate of it for this machine. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openFolder } from './files.ts';

const run = promisify(execFile);
const NAMES = 'subjectAltName=IP:127.0.0.1,DNS:localhost';

/** Null if there is no openssl to make them with. */
export async function makeTlsFiles() {
  const folder = openFolder();
  const path = (name: string): string => join(folder.path, name);
  const [ca, caKey, cert, key] = [path('ca.pem'), path('ca.key'), path('cert.pem'), path('cert.key')];
  const newKey = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  try {
    await run('openssl', [...newKey, '-subj', '/CN=evalgate test authority', ...filesOf(ca, caKey)]);
    const signed = ['-subj', '/CN=localhost', '-addext', NAMES, '-CA', ca, '-CAkey', caKey];
    await run('openssl', [...newKey, ...signed, ...filesOf(cert, key)]);
  } catch (error) {
    folder.close();
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  return { ca, cert, key, remove: () => folder.close() };
}

function filesOf(certificate: string, key: string): string[] {
  return ['-keyout', key, '-out', certificate];
}
