import { isIP } from 'node:net';
import { array, assert, integer, ipV4, ipV4Extended, ipV6, oneof, property, string, tuple } from 'fast-check';
import { expect, test } from 'vitest';
import { addressKey, createClientAddress } from '../../../src/keys/client-address.ts';

const behindProxies = createClientAddress(['10.0.0.0/8', '192.168.1.1', 'fd00::/8']);
const direct = createClientAddress([]);

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['::FFFF:cb00:7109', '203.0.113.9'],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['fe80::1%my-if.7', 'fe80::1'],
  [undefined, 'unknown'],
])('the socket address %s is written as %s', (remoteAddress, address) => {
  expect(direct({ remoteAddress, forwardedFor: undefined })).toBe(address);
});

test('K9: without trusted proxies X-Forwarded-For counts for nothing', () => {
  expect(direct({ remoteAddress: '10.0.0.1', forwardedFor: '203.0.113.9' })).toBe('10.0.0.1');
});

test('K9: from an address that is not trusted X-Forwarded-For counts for nothing', () => {
  expect(behindProxies({ remoteAddress: '198.51.100.7', forwardedFor: '203.0.113.9' })).toBe('198.51.100.7');
});

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['1.1.1.1, 203.0.113.9', '203.0.113.9'],
  ['1.1.1.1, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
  ['1.1.1.1,203.0.113.9,192.168.1.1,fd12::1', '203.0.113.9'],
  ['203.0.113.9, 192.168.1.2', '192.168.1.2'],
  ['10.9.9.9, 10.8.8.8', '10.9.9.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['2001:db8::5', '2001:db8::5'],
  ['[2001:db8::5]:4711', '2001:db8::5'],
  ['[2001:db8::5]', '2001:db8::5'],
  ['203.0.113.9:4711', '203.0.113.9'],
])('K9: behind trusted proxies %j tells the rightmost address that is not theirs: %s', (forwardedFor, address) => {
  expect(behindProxies({ remoteAddress: '10.0.0.1', forwardedFor })).toBe(address);
});

test('K9: several X-Forwarded-For fields are one list', () => {
  const connection = { remoteAddress: '10.0.0.1', forwardedFor: ['1.1.1.1', '203.0.113.9, 10.0.0.2'] };
  expect(behindProxies(connection)).toBe('203.0.113.9');
});

test.each([
  'unknown',
  '',
  ' ',
  'a'.repeat(5000),
  '1',
  '127.1',
  '010.0.0.9',
  '256.1.1.1',
  '1.2.3.4.5',
  '<script>',
  ',,',
])('K9: an entry that is no address never becomes one; the last trusted hop stands for it: %j', (garbage) => {
  expect(behindProxies({ remoteAddress: '10.0.0.1', forwardedFor: garbage })).toBe('10.0.0.1');
  const walked = { remoteAddress: '10.0.0.1', forwardedFor: `203.0.113.9, ${garbage}, 10.0.0.2` };
  expect(behindProxies(walked)).toBe('10.0.0.2');
});

test('K9: whatever text a caller sends, what comes out is an address', () => {
  const octet = integer({ min: -1, max: 256 }).map(String);
  const entry = oneof(
    ipV4(),
    ipV6(),
    ipV4Extended(),
    string(),
    tuple(ipV6(), string()).map(([address, zone]) => `${address}%${zone}`),
    tuple(octet, octet, octet, octet).map((octets) => octets.join('.')),
  );
  assert(
    property(array(entry), (entries) => {
      const address = behindProxies({ remoteAddress: '10.0.0.1', forwardedFor: entries.join(', ') });
      expect(isIP(address)).not.toBe(0);
      expect(addressKey(address)).toMatch(/^(?:[0-9.]+|[0-9a-f:]+\/64)$/);
    }),
    { numRuns: 2000 },
  );
});

test('K9: a trusted proxy that is seen as an IPv4-mapped address is trusted', () => {
  expect(behindProxies({ remoteAddress: '::ffff:10.0.0.1', forwardedFor: '203.0.113.9' })).toBe('203.0.113.9');
});

test('K9: a mapped subnet trusts the IPv4 addresses in it and no others', () => {
  const address = createClientAddress(['::ffff:10.0.0.0/104']);
  expect(address({ remoteAddress: '10.200.0.1', forwardedFor: '203.0.113.9' })).toBe('203.0.113.9');
  expect(address({ remoteAddress: '11.0.0.1', forwardedFor: '203.0.113.9' })).toBe('11.0.0.1');
});

test('K9: an IPv6 subnet does not trust IPv4, nor the other way round', () => {
  expect(createClientAddress(['::/0'])({ remoteAddress: '10.0.0.1', forwardedFor: '203.0.113.9' })).toBe('10.0.0.1');
  expect(createClientAddress(['0.0.0.0/0'])({ remoteAddress: 'fd00::1', forwardedFor: '203.0.113.9' })).toBe('fd00::1');
});

test('K9: a chain made longer than any real one is not walked to its end', () => {
  const forwardedFor = `203.0.113.9, ${Array.from({ length: 500 }, () => '10.0.0.3').join(', ')}`;
  expect(behindProxies({ remoteAddress: '10.0.0.1', forwardedFor })).toBe('10.0.0.3');
});

test.each([
  '10/8',
  '10.0.0.0/33',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  'fd00::/129',
  'loopback',
  '',
  '::ffff:10.0.0.0/8',
  '10.0.0.0/-1',
])('a trusted proxy that is no subnet is refused by name: %j', (cidr) => {
  expect(() => createClientAddress(['127.0.0.1', cidr])).toThrow(
    new RangeError(`"${cidr}" is no subnet: write an address and a prefix length, such as 10.0.0.0/8 or fd00::/8.`),
  );
});

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['::1', '::/64'],
  ['unknown', 'unknown'],
])('K9: failures of %s count under %s', (address, key) => {
  expect(addressKey(address)).toBe(key);
});
