/** The gateway that the checks run against: a process of its own, in front of the sample store. */
import { join } from 'node:path';
import { z } from 'zod';
import { GatewayProcess } from '../support/process.ts';

export const TOOLS = join(import.meta.dirname, 'tools');

/** One row of the report. */
export interface Check {
  readonly name: string;
  readonly measured: string;
  /** Empty if it passed. */
  readonly faults: readonly string[];
}

const parameterSchema = z.union([
  z.looseObject({ name: z.string(), in: z.string(), example: z.unknown().optional() }),
  z.object({ $ref: z.string() }),
]);
const operationSchema = z.looseObject({
  operationId: z.string(),
  parameters: z.array(parameterSchema),
  responses: z.record(z.string(), z.looseObject({ $ref: z.string().optional() })),
});
const documentSchema = z.looseObject({
  paths: z.record(z.string(), z.looseObject({ get: operationSchema })),
  components: z.looseObject({ responses: z.record(z.string(), z.looseObject({})) }),
});

export type ApiDocument = z.output<typeof documentSchema>;
export type Operation = z.output<typeof operationSchema>;

export interface World {
  readonly gateway: GatewayProcess;
  /** As the gateway serves it. */
  readonly document: ApiDocument;
  /** A key of one workspace, and the ids that the document has as examples. */
  readonly target: Readonly<Record<'baseUrl' | 'key' | 'workspaceId' | 'reportId' | 'callId' | 'scorecardId', string>>;
}

/** The caller stops the gateway. */
export async function openWorld(): Promise<World> {
  const gateway = await GatewayProcess.start({ env: { LOG_LEVEL: 'error' } });
  const document = documentSchema.parse(await (await fetch(`${gateway.publicUrl}/openapi.json`)).json());
  const examples = new Map(
    operationsIn(document).flatMap(({ parameters }) =>
      parameters.flatMap((one) =>
        'name' in one && one.in === 'path' ? [[one.name, String(one.example)] as const] : [],
      ),
    ),
  );
  const idOf = (name: string): string => {
    const id = examples.get(name);
    if (id === undefined) throw new Error(`The document has no example of ${name}.`);
    return id;
  };
  const workspaceId = idOf('workspaceId');
  const target = {
    baseUrl: gateway.publicUrl,
    key: await gateway.issueKey({ workspaceIds: [workspaceId] }),
    workspaceId,
    reportId: idOf('reportId'),
    callId: idOf('callId'),
    scorecardId: idOf('scorecardId'),
  };
  return { gateway, document, target };
}

export function operationsIn(document: ApiDocument): readonly Operation[] {
  return Object.values(document.paths).map(({ get }) => get);
}

/** The program of that name in the tools' own folder. */
export function toolPath(name: string): string {
  return join(TOOLS, 'node_modules/.bin', name);
}
