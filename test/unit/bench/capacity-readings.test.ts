import { expect, test } from 'vitest';
import { infoNumber, metricSum, sampleCount } from '../../bench/capacity-readings.ts';

const INFO = '# Stats\r\ntotal_net_input_bytes:1234\r\ntotal_net_input_bytes_per_sec:9\r\nused_memory:77\r\n';
const METRICS = `# HELP reads_total Reads.
# TYPE reads_total counter
reads_total{class="list",tier="memory"} 10
reads_total{class="list",tier="redis"} 3
reads_total{class="transcript",tier="redis"} 2.5
reads_total_of_others{tier="redis"} 1000
up 1
`;

test('a number of INFO is read by its whole name, and is 0 where it is not told', () => {
  expect(infoNumber(INFO, 'total_net_input_bytes')).toBe(1234);
  expect(infoNumber(INFO, 'used_memory')).toBe(77);
  expect(infoNumber(INFO, 'aof_current_size')).toBe(0);
});

test('the samples of a metric are added up, of those with a label alone where one is named', () => {
  expect(metricSum(METRICS, 'reads_total')).toBe(15.5);
  expect(metricSum(METRICS, 'reads_total', 'tier="redis"')).toBe(5.5);
  expect(metricSum(METRICS, 'up')).toBe(1);
  expect(metricSum(METRICS, 'down')).toBe(0);
});

test('comments are no samples', () => {
  expect(sampleCount(METRICS)).toBe(5);
});
