import { expect, test } from 'vitest';
import { describeAddress, parseRedisAddress, RedisAddressError } from '../../../src/redis/address.ts';

const NOBODY = { username: null, password: null };
const PLAIN = {
  kind: 'single',
  primary: '',
  db: 0,
  credentials: NOBODY,
  sentinelCredentials: NOBODY,
  tls: null,
  family: 0,
};
const TLS = { caFile: null, certFile: null, keyFile: null, serverName: null };

test.each([
  ['redis://redis', { ...PLAIN, nodes: [{ host: 'redis', port: 6379 }] }],
  ['REDIS://10.0.0.1:7000/', { ...PLAIN, nodes: [{ host: '10.0.0.1', port: 7000 }] }],
  [
    'redis://user:p%40ss%3A@[fd00::1]:7000/2?family=6',
    {
      ...PLAIN,
      nodes: [{ host: 'fd00::1', port: 7000 }],
      db: 2,
      credentials: { username: 'user', password: 'p@ss:' },
      family: 6,
    },
  ],
  [
    'rediss://:pw@redis?tlsCaFile=/etc/ca%20file.pem&tlsCertFile=c.pem&tlsKeyFile=k.pem&tlsServerName=r.example',
    {
      ...PLAIN,
      nodes: [{ host: 'redis', port: 6379 }],
      credentials: { username: null, password: 'pw' },
      tls: { caFile: '/etc/ca file.pem', certFile: 'c.pem', keyFile: 'k.pem', serverName: 'r.example' },
    },
  ],
  [
    'rediss+cluster://a:1,b/0',
    {
      ...PLAIN,
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 6379 },
      ],
      tls: TLS,
    },
  ],
  [
    'redis+sentinel://user:pw@a,b:1/my-primary/3?sentinelUsername=s&sentinelPassword=t%26u',
    {
      ...PLAIN,
      kind: 'sentinel',
      nodes: [
        { host: 'a', port: 26_379 },
        { host: 'b', port: 1 },
      ],
      primary: 'my-primary',
      db: 3,
      credentials: { username: 'user', password: 'pw' },
      sentinelCredentials: { username: 's', password: 't&u' },
    },
  ],
])('%s', (url, expected) => {
  expect(parseRedisAddress(url)).toEqual(expected);
});

test.each([
  ['http://a', /none of redis:\/\/host:port/],
  ['redis://', /none of/],
  ['redis+other://a', /none of/],
  ['redis://a,b', /several hosts: a Cluster begins with redis\+cluster/],
  ['redis://a:70000', /a port is at most 65535/],
  ['redis+cluster://a,,b', /neither a name nor an IP address/],
  ['redis+cluster://a/1', /a Cluster has database 0 alone/],
  ['redis://a/one', /its database is no number/],
  ['redis+sentinel://a:26379', /lacks the name of the primary/],
  ['redis+sentinel://a/main/1/2', /is its database, and no more/],
  ['redis://a?family=5', /family is 4, 6 or 0/],
  ['redis://a?tlsCaFile=x', /no option tlsCaFile: there are family$/],
  ['rediss://a?commandTimeout=1', /no option commandTimeout: there are family, tlsCaFile/],
  ['redis://a?s3cret%3D', /no option of another name/],
  ['rediss://a?tlsCertFile=cert.pem', /its options tlsCertFile and tlsKeyFile go together/],
  ['rediss+sentinel://a/main?tlsKeyFile=key.pem', /its options tlsCertFile and tlsKeyFile go together/],
  ['redis://:100%@a', /write %25/],
])('%s is refused with the reason', (url, reason) => {
  expect(() => parseRedisAddress(url)).toThrow(RedisAddressError);
  expect(() => parseRedisAddress(url)).toThrow(reason);
});

test('what is told to people holds hosts, ports and the name of the primary, and no password', () => {
  const told = [
    'redis://user:s3cret@redis/1',
    'rediss+cluster://:s3cret@a:1,[fd00::1]',
    'redis+sentinel://:s3cret@a,b/main?sentinelPassword=s3cret',
  ].map((url) => describeAddress(parseRedisAddress(url)));
  expect(told).toEqual([
    'Redis at redis:6379',
    'the Cluster at a:1, [fd00::1]:6379',
    'the primary main of the Sentinels at a:26379, b:26379',
  ]);
});
