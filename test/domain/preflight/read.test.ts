import { expect, test } from 'vitest';
import * as read from '../../../src/domain/preflight/read.js';

test('sockets that listen', () => {
  const head = '  sl  local_address rem_address   st tx_queue\n';
  const tcp = `${head}   0: 0100007F:192B 00000000:0000 0A 00000000:00000000\n   1: 0100007F:0016 0100007F:9999 01 00000000:0\n`;
  expect(read.readListeners('tcp', tcp)).toEqual([{ protocol: 'tcp', port: 6443 }]);
  const udp6 = `${head} 1234: 00000000000000000000000000000000:0035 00000000000000000000000000000000:0000 07 0:0\n`;
  expect(read.readListeners('udp', udp6)).toEqual([{ protocol: 'udp', port: 53 }]);
});

test.each([
  ['swaps', read.readSwaps('Filename Type Size\n/dev/sda2 partition 1\n'), ['/dev/sda2']],
  ['no swaps', read.readSwaps('Filename Type Size\n'), []],
  ['memory', read.readMemory('MemTotal:       2048 kB\n'), 2_097_152],
  ['CPUs', read.readCpus('processor\t: 0\nmodel\t: x\nprocessor\t: 1\n'), 2],
  ['capabilities', read.readCapabilities('CapEff:\t00000000a80425fb\n'), 0xa80425fbn],
  ['open files', read.readOpenFiles('Max open files            1024                 524288               files\n'), 524_288],
  ['any number of open files', read.readOpenFiles('Max open files  1024  unlimited  files\n'), Number.MAX_SAFE_INTEGER],
  ['servers', read.readNameservers('# nameserver 1.1.1.1\nnameserver 192.0.2.1\nsearch a\n'), ['192.0.2.1']],
  ['a built-in module', read.hasBuiltin('kernel/net/br-netfilter.ko\n', 'br_netfilter'), true],
  ['another module', read.hasBuiltin('kernel/fs/overlayfs/overlay.ko\n', 'lay'), false],
])('%s', (_, found, expected) => {
  expect(found).toEqual(expected);
});

test('rubbish says nothing', () => {
  for (const text of ['', '\0\0', 'x'.repeat(100_000), '{"a":1}']) {
    const { readMemory, readCpus, readCapabilities, readOpenFiles } = read;
    expect([readMemory, readCpus, readCapabilities, readOpenFiles].map((of) => of(text) ?? undefined)).toEqual(
      Array(4).fill(undefined),
    );
    expect([...read.readListeners('tcp', text), ...read.readNameservers(text)]).toEqual([]);
  }
});
