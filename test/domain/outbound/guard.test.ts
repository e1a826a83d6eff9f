import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { judgeAddress, judgeForm, judgeName, literalAddress } from '../../../src/domain/outbound/guard.js';

/** As a client does it, which asks a name service only for what is no address. */
function judgeUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return 'no URL';
  const url = new URL(text);
  const address = literalAddress(url.hostname);
  return judgeForm(url) ?? (address === undefined ? judgeName(url.hostname) : judgeAddress(address));
}

describe('Outbound guard: spellings of forbidden targets', () => {
  test.each<[string, string]>([
    // Loopback.
    ['http://127.0.0.1/', '127.0.0.1 is loopback'],
    ['http://127.0.0.1:8080/x?y#z', '127.0.0.1 is loopback'],
    ['http://127.255.255.254/', '127.255.255.254 is loopback'],
    ['http://127.1/', '127.0.0.1 is loopback'],
    ['http://127.0.1/', '127.0.0.1 is loopback'],
    ['http://127.0.0.1./', '127.0.0.1 is loopback'],
    ['http://2130706433/', '127.0.0.1 is loopback'],
    ['http://017700000001/', '127.0.0.1 is loopback'],
    ['http://0177.0.0.1/', '127.0.0.1 is loopback'],
    ['http://0177.0.0.01/', '127.0.0.1 is loopback'],
    ['http://00000177.1/', '127.0.0.1 is loopback'],
    ['http://0x7f000001/', '127.0.0.1 is loopback'],
    ['http://0X7F000001/', '127.0.0.1 is loopback'],
    ['http://0x7f.0.0.1/', '127.0.0.1 is loopback'],
    ['http://0x7F.0X0.0x0.0x1/', '127.0.0.1 is loopback'],
    ['http://0x7f.1/', '127.0.0.1 is loopback'],
    ['http://127.0x1/', '127.0.0.1 is loopback'],
    ['http://①②⑦.⓪.⓪.①/', '127.0.0.1 is loopback'],
    ['http://１２７．０．０．１/', '127.0.0.1 is loopback'],
    ['http://127。0。0。1/', '127.0.0.1 is loopback'],
    ['http://%31%32%37.0.0.1/', '127.0.0.1 is loopback'],
    ['http://1\n2\t7.0.0.1/', '127.0.0.1 is loopback'],
    ['http:\\\\127.0.0.1\\', '127.0.0.1 is loopback'],
    ['HTTP://127.0.0.1/', '127.0.0.1 is loopback'],
    ['http:127.0.0.1', '127.0.0.1 is loopback'],
    ['http://[::1]/', '::1 is loopback'],
    ['http://[::1]:443/', '::1 is loopback'],
    ['http://[0:0:0:0:0:0:0:1]/', '::1 is loopback'],
    ['http://[0000:0000:0000:0000:0000:0000:0000:0001]/', '::1 is loopback'],
    ['http://[::0001]/', '::1 is loopback'],
    ['http://[::0.0.0.1]/', '::1 is loopback'],
    // The same in forms that hold it.
    ['http://[::ffff:127.0.0.1]/', '::ffff:127.0.0.1 is 127.0.0.1, which is loopback'],
    ['http://[::FFFF:127.0.0.1]/', '::ffff:127.0.0.1 is 127.0.0.1, which is loopback'],
    ['http://[::ffff:7f00:1]/', '::ffff:127.0.0.1 is 127.0.0.1, which is loopback'],
    ['http://[0:0:0:0:0:ffff:7f00:0001]/', '::ffff:127.0.0.1 is 127.0.0.1, which is loopback'],
    ['http://[::ffff:169.254.169.254]/', '::ffff:169.254.169.254 is 169.254.169.254, which is a metadata service'],
    ['http://[::ffff:0.0.0.0]/', '::ffff:0.0.0.0 is 0.0.0.0, which is unspecified'],
    ['http://[::127.0.0.1]/', '::7f00:1 is 127.0.0.1, which is loopback'],
    ['http://[::ffff:0:127.0.0.1]/', '::ffff:0:7f00:1 is 127.0.0.1, which is loopback'],
    ['http://[64:ff9b::127.0.0.1]/', '64:ff9b::7f00:1 is 127.0.0.1, which is loopback'],
    ['http://[64:ff9b::a9fe:a9fe]/', '64:ff9b::a9fe:a9fe is 169.254.169.254, which is a metadata service'],
    ['http://[64:ff9b:1::127.0.0.1]/', '64:ff9b:1::7f00:1 is 127.0.0.1, which is loopback'],
    ['http://[64:ff9b:1:abcd::169.254.169.254]/', '64:ff9b:1:abcd::a9fe:a9fe is 169.254.169.254, which is a metadata service'],
    ['http://[2002:7f00:1::]/', '2002:7f00:1:: is 127.0.0.1, which is loopback'],
    ['http://[2002:a9fe:a9fe::1]/', '2002:a9fe:a9fe::1 is 169.254.169.254, which is a metadata service'],
    ['http://[2001::80ff:fffe]/', '2001::80ff:fffe is 127.0.0.1, which is loopback'],
    // Unspecified: the kernel connects to itself.
    ['http://0.0.0.0/', '0.0.0.0 is unspecified'],
    ['http://0/', '0.0.0.0 is unspecified'],
    ['http://0x0/', '0.0.0.0 is unspecified'],
    ['http://00/', '0.0.0.0 is unspecified'],
    ['http://0.1.2.3/', '0.1.2.3 is unspecified'],
    ['http://[::]/', ':: is unspecified'],
    ['http://[0::0]/', ':: is unspecified'],
    ['http://[::0.0.0.0]/', ':: is unspecified'],
    // Link-local.
    ['http://169.254.1.1/', '169.254.1.1 is link-local'],
    ['http://169.254.65535/', '169.254.255.255 is link-local'],
    ['http://[fe80::1]/', 'fe80::1 is link-local'],
    ['http://[FE80::1]/', 'fe80::1 is link-local'],
    ['http://[febf:ffff::1]/', 'febf:ffff::1 is link-local'],
    ['http://[fe80::a9fe:a9fe]/', 'fe80::a9fe:a9fe is link-local'],
    // Multicast and broadcast.
    ['http://224.0.0.1/', '224.0.0.1 is multicast'],
    ['http://239.255.255.255/', '239.255.255.255 is multicast'],
    ['http://255.255.255.255/', '255.255.255.255 is broadcast'],
    ['http://0xffffffff/', '255.255.255.255 is broadcast'],
    ['http://[ff02::1]/', 'ff02::1 is multicast'],
    ['http://[ff0e::fb]/', 'ff0e::fb is multicast'],
    // Metadata services.
    ['http://169.254.169.254/latest/meta-data/', '169.254.169.254 is a metadata service'],
    ['http://2852039166/', '169.254.169.254 is a metadata service'],
    ['http://0xa9fea9fe/', '169.254.169.254 is a metadata service'],
    ['http://0251.0376.0251.0376/', '169.254.169.254 is a metadata service'],
    ['http://169.254.43518/', '169.254.169.254 is a metadata service'],
    ['http://169.254.170.2/', '169.254.170.2 is a metadata service'],
    ['http://169.254.170.23/', '169.254.170.23 is a metadata service'],
    ['http://169.254.42.42/', '169.254.42.42 is a metadata service'],
    ['http://100.100.100.200/', '100.100.100.200 is a metadata service'],
    ['http://168.63.129.16/', '168.63.129.16 is a metadata service'],
    ['http://192.0.0.192/', '192.0.0.192 is a metadata service'],
    ['http://[fd00:ec2::254]/', 'fd00:ec2::254 is a metadata service'],
    ['http://[fd00:0ec2:0:0:0:0:0:0254]/', 'fd00:ec2::254 is a metadata service'],
    ['http://[fd00:ec2::23]/', 'fd00:ec2::23 is a metadata service'],
    ['http://[fd20:ce::254]/', 'fd20:ce::254 is a metadata service'],
    ['http://[fd00:42::42]/', 'fd00:42::42 is a metadata service'],
    ['http://[fd00:c1::169.254.169.254]/', 'fd00:c1::a9fe:a9fe is a metadata service'],
    // Names.
    ['http://localhost/', 'localhost is this machine'],
    ['http://LocalHost:80/', 'localhost is this machine'],
    ['http://localhost./', 'localhost. is this machine'],
    ['http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/', 'localhost is this machine'],
    ['http://ｌocalhost/', 'localhost is this machine'],
    ['http://x.localhost/', 'x.localhost is this machine'],
    ['http://local\u00adhost/', 'localhost is this machine'],
    // What is no URL of the web.
    ['http://[fe80::1%25eth0]/', 'no URL'],
    ['http://[fe80::1%eth0]/', 'no URL'],
    ['http://[::1%lo]/', 'no URL'],
    ['http://127.0.0.256/', 'no URL'],
    ['http://127.0.0.08/', 'no URL'],
    ['http://1.2.3.4.5/', 'no URL'],
    ['http://[::1/', 'no URL'],
    ['http://::1/', 'no URL'],
    ['http://', 'no URL'],
    ['127.0.0.1/', 'no URL'],
    ['//example.com/', 'no URL'],
    ['', 'no URL'],
    ['ftp://example.com/', 'ftp: is neither http nor https'],
    ['file:///etc/passwd', 'file: is neither http nor https'],
    ['gopher://example.com/', 'gopher: is neither http nor https'],
    ['ws://example.com/', 'ws: is neither http nor https'],
    ['data:text/plain,x', 'data: is neither http nor https'],
    ['javascript:1', 'javascript: is neither http nor https'],
    ['unix:/run/x.sock', 'unix: is neither http nor https'],
    ['http://user@example.com/', 'credentials belong into a header, not into the URL'],
    ['http://user:password@example.com/', 'credentials belong into a header, not into the URL'],
    ['http://example.com@127.0.0.1/', 'credentials belong into a header, not into the URL'],
    ['http://:x@example.com/', 'credentials belong into a header, not into the URL'],
  ])('%s', (text, why) => {
    expect(judgeUrl(text)).toBe(why);
  });
});

describe('Outbound guard: what is allowed', () => {
  test.each([
    'http://example.com/',
    'https://example.com:8443/path?query',
    'https://EXAMPLE.com./',
    'https://bücher.example/',
    'https://localhost.example.com/',
    'https://notlocalhost/',
    'https://127.0.0.1.example.com/',
    'http://1.1.1.1/',
    'http://8.8.2056/',
    'http://126.255.255.255/',
    'http://128.0.0.1/',
    'http://1.0.0.0/',
    'http://223.255.255.255/',
    'http://240.0.0.1/',
    'http://255.255.255.254/',
    'http://169.253.255.255/',
    'http://169.255.0.0/',
    'http://168.63.129.15/',
    'http://100.100.100.201/',
    'http://192.0.0.191/',
    // Private ranges, on purpose.
    'http://10.0.0.1/',
    'http://172.16.0.1/',
    'http://192.168.1.1/',
    'http://100.64.0.1/',
    'http://[fd12:3456::1]/',
    'http://[fd00:ec2::255]/',
    'http://[fc00::1]/',
    'http://[2606:4700:4700::1111]/',
    'http://[2001:db8::1]/',
    'http://[fe7f::1]/',
    'http://[fec0::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://[::ffff:8.8.8.8]/',
    'http://[64:ff9b::8.8.8.8]/',
    'http://[64:ff9b::10.0.0.1]/',
    'http://[64:ff9b:1::10.0.0.1]/',
    'http://[2002:808:808::1]/',
    'http://[2001::f7f7:f7f7]/',
    'http://[1::1]/',
  ])('%s', (text) => {
    expect(judgeUrl(text)).toBeUndefined();
  });
});

describe('addresses as a name service gives them', () => {
  test.each([
    ['fe80::1%eth0', '"fe80::1%eth0" is no address'],
    ['::1%lo', '"::1%lo" is no address'],
    ['127.1', '"127.1" is no address'],
    ['0177.0.0.1', '"0177.0.0.1" is no address'],
    ['2130706433', '"2130706433" is no address'],
    ['', '"" is no address'],
    ['example.com', '"example.com" is no address'],
    ['0:0:0:0:0:FFFF:127.0.0.1', '::ffff:127.0.0.1 is 127.0.0.1, which is loopback'],
  ])('%s is never taken for a harmless one', (text, why) => {
    expect(judgeAddress(text)).toBe(why);
  });

  const octets = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 }).map((parts) => parts.join('.'));

  test('law: an IPv4 address and every form of IPv6 that holds it are judged alike', () => {
    fc.assert(
      fc.property(octets, (address) => {
        const forbidden = judgeAddress(address) !== undefined;
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
        const [high, low] = [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
        const forms = [
          `::ffff:${address}`,
          `::${address}`,
          `64:ff9b::${address}`,
          `2002:${high}:${low}::`,
          `64:ff9b:1::${high}:${low}`,
        ];
        for (const form of forms) expect([form, judgeAddress(form) !== undefined]).toEqual([form, forbidden]);
      }),
    );
  });

  test.each([
    ['127.', 'loopback'],
    ['0.', 'unspecified'],
  ])('law: all of %s0.0.0/8', (start, kind) => {
    fc.assert(
      fc.property(octets, (address) => {
        const inside = start + address.split('.').slice(1).join('.');
        expect(judgeAddress(inside)).toBe(`${inside} is ${kind}`);
      }),
    );
  });
});
