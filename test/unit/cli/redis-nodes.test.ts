import { expect, test } from 'vitest';
import { readClusterView } from '../../../src/cli/redis-nodes.ts';

const INFO =
  'cluster_state:fail\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:5461\r\ncluster_slots_pfail:10923\r\n';

const NODES = [
  'a1 127.0.0.1:7006@17006 myself,master - 0 1795197700000 7 connected 0-5460',
  'b2 10.0.0.2:7003@17003,three.internal master,fail? - 1795197724 1795197721 3 connected 10923-16383',
  'c3 127.0.0.1:7002@17002 master,fail - 1795197724 1795197721 2 disconnected 5461-9000 9002-10922',
  'd4 127.0.0.1:7004@17004 slave,fail? b2 1795197724 1795197721 2 connected',
  // Its replica has taken over.
  'e5 127.0.0.1:7001@17001 master,fail - 1795197690 1795197688 1 disconnected',
  '',
].join('\n');

test('a node tells which primaries with slots it does not reach, and how many slots are served', () => {
  expect(readClusterView(INFO, NODES)).toEqual({
    assignedSlots: 16_384,
    servedSlots: 5461,
    silent: ['10.0.0.2:7003', '127.0.0.1:7002'],
  });
});

test('slots that no node has are not assigned', () => {
  const info = 'cluster_state:fail\r\ncluster_slots_assigned:16383\r\ncluster_slots_ok:16383\r\n';
  expect(readClusterView(info, 'a1 h:1@2 myself,master - 0 0 7 connected 0-16382\n')).toEqual({
    assignedSlots: 16_383,
    servedSlots: 16_383,
    silent: [],
  });
});
