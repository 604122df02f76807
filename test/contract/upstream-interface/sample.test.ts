import { createSampleData } from '../../../src/sample/data.ts';
import { SampleUpstream } from '../../../src/sample/server.ts';
import { describeUpstreamInterface } from './suite.ts';

describeUpstreamInterface('the bundled sample', async () => {
  const data = createSampleData({ seed: 11, evaluations: 600 });
  const [workspaceId = '', , otherWorkspaceId = ''] = data.workspaceIds;
  const token = 'the-token';
  const upstream = new SampleUpstream({ data, token });
  const { url } = await upstream.listen(0);
  return {
    url,
    token,
    workspaceId,
    otherWorkspaceId,
    completedId: data.demo.reportId,
    unfinishedId: data.evaluations.find(({ state }) => state === 'QUEUED')?._id ?? '',
    stop: () => upstream.close(),
  };
});
