/** The file layer: reads the YAML file and finds each setting in it; refuses whatever no setting is known for. */
import { parseDocument } from 'yaml';
import { type ConfigFault, showGiven } from './errors.ts';
import type { GivenValue, Layer, ReadFile } from './layer.ts';
import { reasonOf } from './layer.ts';
import { configSchema } from './schema.ts';
import { isSection, isTree, listSettings, type Section, type Tree } from './settings.ts';
import { nearest } from './suggest.ts';

/** `name` is how messages call the file. */
export function readFileLayer(path: string, name: string, readFile: ReadFile): Layer {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    return unusable(
      { name: 'CONFIG_FILE', given: showGiven(path, false), problem: reasonOf(error) },
      'a YAML file that can be read',
    );
  }
  const content = parseYaml(text);
  if ('problem' in content) {
    return unusable({ name, given: null, problem: content.problem }, 'one YAML 1.2 document of settings');
  }
  const layer = { values: new Map<string, GivenValue>(), faults: new Array<ConfigFault>(), unknown: new Set<string>() };
  collect({ section: configSchema, tree: content.tree, path: [], name }, layer);
  return layer;
}

/** Nothing is known of any setting that the file may hold. */
function unusable(fault: Omit<ConfigFault, 'allowed'>, allowed: string): Layer {
  const faults = [{ ...fault, allowed: `${allowed}; config/default.yaml shows its form` }];
  return { values: new Map(), faults, unknown: new Set(listSettings().map(({ id }) => id)) };
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

interface Place {
  readonly section: Section;
  readonly tree: Tree;
  readonly path: readonly string[];
  /** How messages call the file. */
  readonly name: string;
}

function collect(
  { section, tree, path, name }: Place,
  layer: { values: Map<string, GivenValue>; faults: ConfigFault[] },
): void {
  const known = Object.keys(section.shape);
  for (const [member, value] of Object.entries(tree)) {
    const here = [...path, member];
    const fault = { name: `${here.join('.')} (${name})`, given: null, problem: null };
    const inner = Object.hasOwn(section.shape, member) ? section.shape[member] : undefined;
    if (inner === undefined) {
      layer.faults.push({ ...fault, ...unknownMember(member, known) });
    } else if (!isSection(inner)) {
      layer.values.set(here.join('.'), { written: value, name: fault.name });
    } else if (isTree(value)) {
      collect({ section: inner, tree: value, path: here, name }, layer);
    } else if (value !== null) {
      // A section all of whose members are commented out reads as null, and is as if it were not there.
      const allowed = `a section with any of ${Object.keys(inner.shape).join(', ')}`;
      layer.faults.push({ ...fault, problem: 'it is a section, and one value was given', allowed });
    }
  }
}

function unknownMember(member: string, known: readonly string[]): Pick<ConfigFault, 'problem' | 'allowed'> {
  const meant = nearest(member, known);
  return {
    problem: meant === null ? 'there is no such setting' : `there is no such setting; did you mean "${meant}"?`,
    allowed: known.join(', '),
  };
}
