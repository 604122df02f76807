/** Runs the program: the options as arguments, in the order below; the readings as JSON on stdout. */
import { readAll } from './read-all.ts';

const [baseUrl = '', v1Key = '', v2Key = '', ...ids] = process.argv.slice(2);
const [workspaceId = '', reportId = '', callId = '', scorecardId = ''] = ids;
const readings = await readAll({ baseUrl, v1Key, v2Key, ids: { workspaceId, reportId, callId, scorecardId } });
process.stdout.write(JSON.stringify(readings));
