/** The addresses of the store's interface: nothing else may ever be asked for, whatever a client sends. */
const TEMPLATES: readonly RegExp[] = [
  /^\/internal\/v1\/evaluations\?(?:workspaceId=[0-9a-f-]{36}&)+state=COMPLETED(?:&q=[^&#]*)?(?:&scorecardId=[\w-]{1,64})?&offset=\d+&limit=\d+$/,
  /^\/internal\/v1\/evaluations\/[\w-]{1,64}(?:\/(?:transcript|scorecard|deal-insights))?$/,
  /^\/internal\/v1\/scorecards\/[\w-]{1,64}$/,
];

/** Whether path and query are of exactly one of them. */
export function isOfTemplate(path: string): boolean {
  return TEMPLATES.filter((template) => template.test(path)).length === 1;
}
