/**
 * The path of the configuration file, and the two words of it that a health check needs. A health check runs beside a gateway
 * every few seconds, and the parser of YAML and the schemas of all settings would take most of its time.
 */
import { fileURLToPath } from 'node:url';
import type { Environment } from './variable.ts';

/** The file that comes with the program and is read unless `CONFIG_FILE` names another. */
export const SHIPPED_FILE = fileURLToPath(new URL('../../config/default.yaml', import.meta.url));

export function configFileOf(env: Environment): string {
  return env['CONFIG_FILE'] || SHIPPED_FILE;
}

const EMPTY = /^\s*(?:#.*)?$/;
const SECTION = /^([A-Za-z]\w*):\s*(?:#.*)?$/;
const MEMBER = /^( +)([A-Za-z]\w*):(?: +(.*?))?(?:\s+#.*)?$/;
/** A host that YAML reads as text, quoted or not. */
const HOST = /^(?:'([\w.:-]+)'|"([\w.:-]+)"|(\d+\.\d+\.\d+\.\d+|(?!(?:null|true|false)$)[a-z](?:[\w.-]*\w)?))$/i;
const PORT = /^(?:0|[1-9]\d{0,4})$/;

/** Null for what the file does not give. */
export interface PlainAdmin {
  readonly host: string | null;
  readonly port: number | null;
}

/**
 * The address in the section `admin` of a file that is written as `config/default.yaml` is: sections in the first column,
 * their members below, one on a line. Null for any other form, which the parser has to read.
 */
export function readPlainAdmin(text: string): PlainAdmin | null {
  const lines = text.split(/\r?\n/).filter((line) => !EMPTY.test(line));
  const headings = lines.filter((line) => !/^\s/.test(line)).map((line) => SECTION.exec(line)?.[1]);
  if (headings.includes(undefined) || new Set(headings).size < headings.length) return null;
  const members = membersOf(lines, 'admin');
  if (members === null) return null;
  const { host, port } = members;
  const [, single, double, bare] = HOST.exec(host ?? '') ?? [];
  const address = { host: single ?? double ?? bare ?? null, port: PORT.test(port ?? '') ? Number(port) : null };
  const isWhole = (address.host !== null || host === undefined) && (address.port !== null || port === undefined);
  return isWhole ? address : null;
}

/** The members of a section, with their values as they are written; null if they do not stand one on a line. */
function membersOf(lines: readonly string[], section: string): Readonly<Record<string, string>> | null {
  const first = lines.findIndex((line) => SECTION.exec(line)?.[1] === section) + 1;
  if (first === 0) return {};
  const next = lines.findIndex((line, index) => index >= first && !/^\s/.test(line));
  const members: Record<string, string> = {};
  let indent: string | null = null;
  for (const line of lines.slice(first, next === -1 ? undefined : next)) {
    const [, spaces = '', name = '', value = ''] = MEMBER.exec(line) ?? [];
    indent ??= spaces;
    if (name === '' || spaces !== indent || name in members) return null;
    members[name] = value;
  }
  return members;
}
