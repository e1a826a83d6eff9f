import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { adopt, surveyAdoption } from '../../../src/app/adoption/adopt-node.js';
import { giveBack, surveyReturn } from '../../../src/app/adoption/give-back.js';
import type { AdoptionParts } from '../../../src/app/adoption/survey.js';
import { decodeAdoption } from '../../../src/domain/adoption/schema.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import {
  checkedFakePair,
  fakeKey,
  formatFakeCertificate,
  parseFakeCertificate,
  provenOf,
} from '../../fakes/fake-certificates.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeConfigSource } from '../../fakes/fake-config-source.js';
import { FakeMachineFiles } from '../../fakes/fake-machine-files.js';
import { FakePairStore } from '../../fakes/fake-pair-store.js';
import { absolute as path } from '../../support/admin-rig.js';

const options = { signal: new AbortController().signal };
const root = formatFakeCertificate({ issuer: 'root', serial: 'root', fingerprint: '', notBefore: 0, notAfter: 1e13 });

/** The n-th certificate of a node; each is issued a second after the one before. */
function pairOf(n: number, node = 'n-1'): Pair {
  const name = `${node} ${n}`;
  const identity = { role: 'node', aid: aid('acme'), nid: nid(node), registration: registrationId('r') } as const;
  const certificate = { issuer: 'root', identity, serial: `a${n}`, fingerprint: provenOf(name).fingerprint };
  return {
    certificate: formatFakeCertificate({ ...certificate, notBefore: n * 1_000, notAfter: 1e13 }),
    privateKey: fakeKey(name),
    ca: root,
  };
}

const legacy = { certificate: '/etc/runos/mtls.crt', privateKey: '/etc/runos/mtls.key', ca: '/etc/runos/ca.crt' };
const mtls = { crt: legacy.certificate, key: legacy.privateKey, ca: legacy.ca, 'public-ca': '/etc/runos/p.crt' };
const atFirst = ['/etc/runos/ca.crt', '/etc/runos/config.yaml', '/etc/runos/mtls.crt', '/etc/runos/mtls.key', '/etc/runos/p.crt'];
const made = ['/d/adoption.json', '/d/enrolment.json', '/d/registration-ca.crt', '/etc/holdfast/config.yaml'];

let files: FakeMachineFiles;
let pairs: FakePairStore;
let parts: AdoptionParts;

beforeEach(() => {
  files = new FakeMachineFiles();
  pairs = new FakePairStore();
  files.write('/etc/runos/config.yaml', 'the configuration');
  files.write('/etc/runos/p.crt', 'public root');
  putLegacy(pairOf(1));
  const source = new FakeConfigSource();
  source.write({ client: { server: { nodeward: 'control', conductor: 'https://api.example' } }, mtls });
  parts = {
    places: {
      legacyConfig: path('/etc/runos/config.yaml'),
      under: (each) => each,
      record: path('/d/adoption.json'),
      config: path('/etc/holdfast/config.yaml'),
      configFolder: path('/etc/holdfast'),
      hidingConfig: path('/d/holdfast.yaml'),
      enrolment: path('/d/enrolment.json'),
      registrationRoot: path('/d/registration-ca.crt'),
    },
    files,
    pairs,
    legacy: source,
    readPair: (pair) => {
      const { identity } = parseFakeCertificate(checkedFakePair(pair).certificate);
      const node = identity?.role === 'node' ? { nid: identity.nid, aid: identity.aid } : { nid: undefined, aid: undefined };
      return { ...checkedFakePair(pair), ...node, isOfRoot: true };
    },
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
    clock: new FakeClock(),
  };
});

function putLegacy(pair: Pair): void {
  for (const part of ['certificate', 'privateKey', 'ca'] as const) files.write(legacy[part], pair[part]);
}

const legacyPair = () => ({
  certificate: files.text(legacy.certificate),
  privateKey: files.text(legacy.privateKey),
  ca: files.text(legacy.ca),
});

/** The data directory stays, with nothing in it. */
const left = () => files.dump().filter((each) => each !== '/d');

const take = async () => adopt(parts, await surveyAdoption(parts, options), options);

async function undo() {
  const found = await surveyReturn(parts, options);
  return found === undefined ? undefined : { ...found, kept: await giveBack(parts, found, options) };
}

async function renew(n: number, node?: string) {
  const { serial } = await pairs.stage(pairOf(n, node), options);
  await pairs.activate(serial, options);
}

describe('adopting', () => {
  test('a survey changes nothing', async () => {
    await surveyAdoption(parts, options);
    expect([files.dump(), pairs.dump()]).toEqual([atFirst, '']);
  });

  test('takes the pair, says where the node is registered, and leaves the older files as they are', async () => {
    const record = await take();
    expect(record).toMatchObject({ state: 'taken', nid: 'n-1', aid: 'acme', serial: 'a1' });
    expect(files.dump()).toEqual([...made, ...atFirst].sort());
    expect(pairs.dump()).toBe('*a1');
    expect(legacyPair()).toEqual(pairOf(1));
    expect(JSON.parse(files.text('/d/enrolment.json') ?? '')).toEqual({ servers: ['control:9192'], nid: 'n-1', aid: 'acme' });
    expect(files.text('/etc/holdfast/config.yaml')).toMatch(/\nclient: {"server":{"conductor":"https:\/\/api.example"}}\n$/);
    expect(decodeAdoption(files.text('/d/adoption.json') ?? '')).toEqual(record);
  });

  test('again does nothing', async () => {
    const record = await take();
    const before = files.dump();
    expect(await take()).toEqual(record);
    expect(files.dump()).toEqual(before);
  });

  test('again after the older agent has renewed takes its new pair', async () => {
    await take();
    putLegacy(pairOf(2));
    expect(await take()).toMatchObject({ state: 'taken', serial: 'a2' });
    expect(pairs.dump()).toBe('*a2 a1');
  });

  test('refuses what is not there', async () => {
    await files.remove(path(legacy.ca), options);
    await expect(take()).rejects.toMatchObject({ code: 'adoption.refused', message: expect.stringContaining(legacy.ca) });
    await files.remove(path('/etc/runos/config.yaml'), options);
    await expect(take()).rejects.toMatchObject({ code: 'adoption.not_found' });
    files.write('/d/adoption.json', 'x');
    await expect(surveyReturn(parts, options)).rejects.toMatchObject({ code: 'adoption.refused' });
  });

  test('refuses a node that is registered, and changes nothing', async () => {
    await renew(1);
    await expect(take()).rejects.toMatchObject({ code: 'adoption.refused' });
    expect(files.dump()).toEqual(atFirst);
  });
});

describe('giving back', () => {
  test('what was never adopted: nothing', async () => {
    expect(await undo()).toBeUndefined();
  });

  test('of an adoption leaves what there was before', async () => {
    await take();
    expect(await undo()).toMatchObject({ plan: { pair: 'as_it_was' }, kept: [], warnings: [] });
    expect([left(), pairs.dump()]).toEqual([atFirst, '']);
    expect(legacyPair()).toEqual(pairOf(1));
    expect(await undo()).toBeUndefined();
  });

  test('of a renewed pair writes that over the older agent’s', async () => {
    await take();
    await renew(2);
    await renew(3);
    expect(await undo()).toMatchObject({ plan: { pair: 'renewed' } });
    expect(legacyPair()).toEqual(pairOf(3));
    expect([left(), pairs.dump()]).toEqual([atFirst, '']);
  });

  test('a renewal that is not finished is told', async () => {
    await take();
    await pairs.stage(pairOf(2), options);
    expect(await undo()).toMatchObject({ warnings: [expect.stringMatching(/^a renewal was begun/)] });
    expect(legacyPair()).toEqual(pairOf(1));
  });

  test('a configuration that people have changed stays', async () => {
    await take();
    files.write('/etc/holdfast/config.yaml', 'logLevel: debug\n');
    expect(await undo()).toMatchObject({ kept: ['/etc/holdfast/config.yaml'] });
    expect(left()).toEqual([...atFirst, '/etc/holdfast/config.yaml'].sort());
  });

  test('a machine that was registered anew since keeps that registration', async () => {
    await take();
    await renew(5, 'n-9');
    files.write('/d/enrolment.json', '{"servers":["other:9192"],"nid":"n-9","aid":"acme"}');
    expect(await undo()).toMatchObject({ plan: { pair: 'registered_anew' } });
    expect(legacyPair()).toEqual(pairOf(1));
    expect(pairs.dump()).toContain('*a5');
    expect(files.dump()).toEqual([...atFirst, '/d/enrolment.json', '/d/registration-ca.crt'].sort());
  });
});

/** Runs `work` with a death before each change in turn, until it lives to its end; `prepare` begins anew each time. */
async function deaths(work: () => Promise<unknown>, goOn: (step: number) => Promise<void>, prepare: () => Promise<void>) {
  for (let step = 1; ; step += 1) {
    await prepare();
    files.dieBefore(step);
    const died = await work().then(
      () => false,
      () => true,
    );
    files.revive();
    await goOn(step);
    if (!died) return step - 1;
  }
}

describe('death before each change', () => {
  const anew = async () => {
    for (const each of files.dump()) await files.remove(path(each), options);
    await files.removeEmptyFolder(path('/etc/holdfast'), options);
    await files.removeEmptyFolder(path('/d'), options);
    await pairs.clear(options);
    files.write('/etc/runos/config.yaml', 'the configuration');
    files.write('/etc/runos/p.crt', 'public root');
    putLegacy(pairOf(1));
  };

  test('of an adoption: again completes it', async () => {
    const changes = await deaths(
      take,
      async () => {
        expect(await take()).toMatchObject({ state: 'taken', serial: 'a1' });
        expect(files.dump()).toEqual([...made, ...atFirst].sort());
        expect([pairs.dump(), legacyPair()]).toEqual(['*a1', pairOf(1)]);
      },
      anew,
    );
    expect(changes).toBe(5);
  });

  test('of an adoption: an undo leaves what there was before', async () => {
    await deaths(
      take,
      async () => {
        await undo();
        expect([left(), pairs.dump()]).toEqual([atFirst, '']);
        expect(legacyPair()).toEqual(pairOf(1));
      },
      anew,
    );
  });

  test('of an undo: again completes it, and the newest pair is never lost', async () => {
    const changes = await deaths(
      undo,
      async () => {
        const kept = (await pairs.load(options)).current;
        // Either it is still ours, or the older agent has all of it.
        if (kept === undefined) expect(legacyPair()).toEqual(pairOf(2));
        else expect(kept).toMatchObject(pairOf(2));
        await undo();
        expect(legacyPair()).toEqual(pairOf(2));
        expect(pairs.dump()).toBe('');
        expect(left()).toEqual(atFirst);
      },
      async () => {
        await anew();
        await take();
        await renew(2);
      },
    );
    expect(changes).toBe(10);
  });

  test('of an undo: an adoption is refused until it is completed', async () => {
    await take();
    await renew(2);
    files.dieBefore(3);
    await expect(undo()).rejects.toThrow();
    files.revive();
    putLegacy(pairOf(2));
    await expect(take()).rejects.toMatchObject({ code: 'adoption.refused', message: expect.stringContaining('--undo') });
  });
});
