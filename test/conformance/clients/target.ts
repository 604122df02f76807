/** The gateway, and ids of the sample store with which every operation has something to show. */
export interface Target {
  /** Without `/v1` or `/v2`. */
  readonly baseUrl: string;
  /** A key with all scopes in that workspace, without limits that a check reaches. */
  readonly key: string;
  readonly workspaceId: string;
  readonly reportId: string;
  readonly callId: string;
  readonly scorecardId: string;
}

/** One value of each answer, by operationId. */
export type Readings = Readonly<Record<string, string | number | boolean | null>>;

/** The body of a 200. Throws an Error that names the operation if the answer is another. */
export function bodyOf<T>(operation: string, result: { data?: T; response?: Response | undefined }): T {
  if (result.data === undefined) throw new Error(`${operation}: ${result.response?.status ?? 'no answer'}`);
  return result.data;
}
