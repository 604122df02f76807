/** The file layer: reads the YAML file and finds each setting in it; refuses every name that is no setting. */
import { parseDocument } from 'yaml';
import { SETTINGS } from './config.ts';
import { type ConfigFault, nearest, reasonOf, showGiven } from './errors.ts';
import { type GivenValue, isTree, type Layer, type ReadFile, REMOVED, REMOVED_PROBLEM, type Tree } from './settings.ts';

interface Found {
  readonly values: Map<string, GivenValue>;
  readonly faults: ConfigFault[];
}

/** `name` is how messages call the file. */
export function readFileLayer(path: string, name: string, readFile: ReadFile): Layer {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    const fault = { name: 'CONFIG_FILE', given: showGiven(path, false), problem: reasonOf(error) };
    return unusable(fault, 'a YAML file that can be read');
  }
  const content = parseYaml(text);
  if ('problem' in content) return unusable({ name, given: null, ...content }, 'one YAML 1.2 document of settings');
  const found: Found = { values: new Map(), faults: [] };
  collect(content.tree, '', name, found);
  return { ...found, unknown: new Set() };
}

/** Nothing is known of any setting that the file may hold. */
function unusable(fault: Omit<ConfigFault, 'allowed'>, allowed: string): Layer {
  const faults = [{ ...fault, allowed: `${allowed}; config/default.yaml shows its form` }];
  return { values: new Map(), faults, unknown: new Set(SETTINGS.map(({ id }) => id)) };
}

function parseYaml(text: string): { readonly tree: Tree } | { readonly problem: string } {
  const document = parseDocument(text);
  // The parser's own messages quote the file, which may hold secrets; its codes and positions do not.
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) {
    const at = error.linePos === undefined ? '' : ` at line ${error.linePos[0].line}, column ${error.linePos[0].col}`;
    return { problem: `it cannot be read as YAML: ${error.code.toLowerCase().replaceAll('_', ' ')}${at}` };
  }
  let content: unknown;
  try {
    content = document.toJS();
  } catch {
    return { problem: 'it cannot be read as YAML: an alias has no anchor before it, or there are too many' };
  }
  if (content === null) return { tree: {} };
  return isTree(content) ? { tree: content } : { problem: 'it does not hold names with values' };
}

/** `prefix`: the path of the section with a dot behind it; empty for the whole file. */
function collect(section: Tree, prefix: string, file: string, { values, faults }: Found): void {
  const known = membersOf(prefix);
  for (const [member, value] of Object.entries(section)) {
    const id = prefix + member;
    const name = `${id} (${file})`;
    const removed = REMOVED.find((setting) => setting.id === id);
    if (removed !== undefined) {
      const fault = { name, given: showGiven(value, false), problem: REMOVED_PROBLEM, allowed: removed.instead };
      if (value !== removed.harmless) faults.push(fault);
    } else if (!known.includes(member)) {
      const meant = nearest(member, known);
      const problem = `there is no such setting${meant === null ? '' : `; did you mean "${meant}"?`}`;
      faults.push({ name, given: null, problem, allowed: known.join(', ') });
    } else if (SETTINGS.some((setting) => setting.id === id)) {
      values.set(id, { written: value, name });
    } else if (isTree(value)) {
      collect(value, `${id}.`, file, { values, faults });
    } else if (value !== null) {
      // A section with only commented-out members reads as null, and counts as not there.
      const allowed = `a section with any of ${membersOf(`${id}.`).join(', ')}`;
      faults.push({ name, given: null, problem: 'it is a section, and one value was given', allowed });
    }
  }
}

/** The names of the settings and sections of a section. */
function membersOf(prefix: string): readonly string[] {
  const inside = SETTINGS.filter(({ id }) => id.startsWith(prefix));
  return [...new Set(inside.map(({ id }) => id.slice(prefix.length).replace(/\..*/, '')))];
}
