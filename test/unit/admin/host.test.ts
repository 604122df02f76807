import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bare, hostnameOf, isAddress, isLoopback } from '../../../src/admin/host.ts';

describe('the name in a Host header', () => {
  test.each([
    ['localhost', 'localhost'],
    ['LocalHost:8081', 'localhost'],
    ['127.0.0.1:80', '127.0.0.1'],
    ['[::1]', '::1'],
    ['[FD00::1]:8081', 'fd00::1'],
    ['münchen.example', 'münchen.example'],
  ])('of %s is %s', (header, name) => {
    expect(hostnameOf(header)).toBe(name);
  });

  test.each([
    undefined,
    '',
    ':80',
    '::1',
    '[::1',
    '[]',
    '[::1]x',
    '[localhost]',
    'a:b',
    'a:',
    'a:123456',
    'a b',
    'a/b',
    'a\\b',
    'user@localhost',
    'a?b',
    'a#b',
    'localhost:80\n',
  ])('of %j is none', (header) => {
    expect(hostnameOf(header)).toBeNull();
  });

  test('is what was put in, whatever the name and port', () => {
    fc.assert(
      fc.property(fc.domain(), fc.integer({ min: 0, max: 65_535 }), (domain, port) => {
        expect(hostnameOf(`${domain}:${port}`)).toBe(domain.toLowerCase());
      }),
    );
  });
});

describe('loopback', () => {
  test('is localhost, ::1 and each address of 127.0.0.0/8', () => {
    expect(['localhost', 'LOCALHOST', '::1'].map(isLoopback)).toEqual([true, true, true]);
    fc.assert(fc.property(fc.ipV4(), (address) => isLoopback(address) === address.startsWith('127.')));
    fc.assert(fc.property(fc.nat(255), fc.nat(255), fc.nat(255), (b, c, d) => isLoopback(`127.${b}.${c}.${d}`)));
  });

  test.each(['127.0.0.1.evil.example', '127.1', '127.0.0.256', '0.0.0.0', '::', '::2', 'localhost.', 'xlocalhost', ''])(
    'is not %j',
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});

test('an address is told from a name', () => {
  expect(['10.0.0.1', 'fd00::1', 'evil.example', '1.2.3', ''].map(isAddress)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('configured names lose their brackets and their case', () => {
  expect(['[FD00::1]', 'Admin.Internal', 'fd00::1'].map(bare)).toEqual(['fd00::1', 'admin.internal', 'fd00::1']);
});
