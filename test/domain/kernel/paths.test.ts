import { describe, expect, test } from 'vitest';
import { type AbsolutePath, absolutePath, makePaths, under } from '../../../src/domain/kernel/paths.js';

const path = (text: string): AbsolutePath => {
  const made = absolutePath(text);
  if (made === undefined) throw new Error(`not absolute: ${text}`);
  return made;
};

describe('absolutePath', () => {
  test.each([
    ['/', '/'],
    ['/var/lib/holdfast', '/var/lib/holdfast'],
    ['/var//lib/./holdfast/', '/var/lib/holdfast'],
    ['/var/lib/../run', '/var/run'],
    ['/../../etc', '/etc'],
    ['', undefined],
    ['holdfast', undefined],
    ['./holdfast', undefined],
    ['/a\0b', undefined],
  ])('%j is %j', (text, expected) => {
    expect(absolutePath(text)).toBe(expected);
  });
});

describe('makePaths', () => {
  test('every path of the machine itself', () => {
    expect(makePaths({ root: path('/'), dataDir: path('/var/lib/holdfast') })).toEqual({
      dataDir: '/var/lib/holdfast',
      machineConfig: '/etc/holdfast/config.yaml',
      adoption: '/var/lib/holdfast/adoption.json',
      identity: '/var/lib/holdfast/node-identity.json',
      auditLog: '/var/lib/holdfast/audit.log',
      logDb: '/var/lib/holdfast/log.db',
      adminDir: '/var/lib/holdfast/admin',
      adminSocket: '/var/lib/holdfast/admin/admin.sock',
      lock: '/var/lib/holdfast/lock',
      config: '/var/lib/holdfast/holdfast.yaml',
      listenPorts: '/var/lib/holdfast/listen-ports.json',
      sysctls: '/var/lib/holdfast/sysctls.json',
      controlDb: '/var/lib/holdfast/control.db',
      etcdWitness: '/var/lib/holdfast/etcd-log.witness',
      sealingKey: '/var/lib/holdfast/sealing.key',
      backup: '/var/lib/holdfast/backup',
      registrationRoot: '/var/lib/holdfast/registration-ca.crt',
      removal: '/var/lib/holdfast.removal',
      firstAdmin: '/var/lib/holdfast/admin-client',
      certs: '/var/lib/holdfast/certs',
      enrolment: '/var/lib/holdfast/enrolment.json',
      journalDb: '/var/lib/holdfast/journal.db',
      dnsmasqMemory: '/var/lib/holdfast/dnsmasq.json',
      install: '/var/lib/holdfast/install',
      viewDb: '/var/lib/holdfast/view.db',
      apiServers: '/var/lib/holdfast/api-servers.json',
      overlayKey: '/var/lib/holdfast/overlay.key',
      run: '/var/lib/holdfast/run',
    });
  });

  test('a root moves all of them', () => {
    const paths = makePaths({ root: path('/tmp/node-a'), dataDir: path('/var/lib/holdfast') });
    const plain = makePaths({ root: path('/'), dataDir: path('/var/lib/holdfast') });
    expect(Object.values(paths)).toEqual(Object.values(plain).map((each) => `/tmp/node-a${each}`));
  });

  test('a data directory at the top has no doubled slash', () => {
    expect(makePaths({ root: path('/'), dataDir: path('/') })).toMatchObject({ dataDir: '/', lock: '/lock' });
    expect(makePaths({ root: path('/r'), dataDir: path('/') })).toMatchObject({ dataDir: '/r', lock: '/r/lock' });
  });

  test('under', () => {
    expect(under(path('/'), path('/etc'))).toBe('/etc');
    expect(under(path('/r'), path('/etc'))).toBe('/r/etc');
  });
});
