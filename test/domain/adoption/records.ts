import type { AdoptionRecord, KnownFile, PairFacts } from '../../../src/domain/adoption/model.js';
import { hostPort, portNumber } from '../../../src/domain/kernel/network.js';
import { absolutePath } from '../../../src/domain/kernel/paths.js';
import { aid, nid } from '../../../src/domain/link/model.js';

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a constant of the test is invalid');
  return value;
}

export const knownFile = (path: string, sha256: string): KnownFile => ({ path: known(absolutePath(path)), sha256 });
export const controlPlane = known(hostPort('control', known(portNumber(9192))));

export function adoptionRecord(changes: Partial<AdoptionRecord> = {}): AdoptionRecord {
  return {
    state: 'taken',
    at: 1,
    nid: nid('n-1'),
    aid: aid('acme'),
    server: controlPlane,
    serial: 'aa',
    source: {
      config: knownFile('/etc/runos/config.yaml', 'c'),
      certificate: knownFile('/etc/runos/mtls.crt', 'x'),
      privateKey: knownFile('/etc/runos/mtls.key', 'k'),
      ca: knownFile('/etc/runos/ca.crt', 'r'),
      publicCa: undefined,
    },
    made: {
      config: knownFile('/etc/holdfast/config.yaml', 'made'),
      enrolment: knownFile('/d/enrolment.json', 'e'),
      registrationRoot: undefined,
    },
    ...changes,
  };
}

export function pairFacts(changes: Partial<PairFacts> = {}): PairFacts {
  return { serial: 'aa', nid: nid('n-1'), aid: aid('acme'), isOfRoot: true, notBefore: 0, notAfter: 1_000_000, ...changes };
}
