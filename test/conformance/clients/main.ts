/** Runs both programs: the target as JSON in the only argument, the readings as JSON on stdout. */
import { callWithHeyApi } from './hey-api.ts';
import { callWithOpenapiTypescript } from './openapi-typescript.ts';

const target = JSON.parse(process.argv[2] ?? '{}');
const readings = {
  'hey-api': await callWithHeyApi(target),
  'openapi-typescript': await callWithOpenapiTypescript(target),
};
process.stdout.write(JSON.stringify(readings));
