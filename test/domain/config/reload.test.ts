import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaults } from '../../../src/domain/config/defaults.js';
import { type Config, type Setting, settingNames, settings } from '../../../src/domain/config/model.js';
import { diffConfig, planReload } from '../../../src/domain/config/plan.js';
import { nodeName } from '../../../src/domain/identity/model.js';
import { addressPort, ipv4Range } from '../../../src/domain/kernel/network.js';

const old = defaults('production');
const range = ipv4Range('10.0.0.0/8') ?? old.vipRange;
const listen = addressPort('0.0.0.0:1') ?? old.metricsListen;
const name = nodeName('a');

describe('diffConfig', () => {
  test.each<{
    name: string;
    wanted: Partial<Config>;
    used: Partial<Config>;
    live: Setting[];
    restart: Setting[];
    minting: Setting[];
  }>([
    { name: 'nothing changed', wanted: {}, used: {}, live: [], restart: [], minting: [] },
    {
      name: 'what can change while running is taken',
      wanted: { logLevel: 'debug', connectTimeoutMs: 1 },
      used: { logLevel: 'debug', connectTimeoutMs: 1 },
      live: ['logLevel', 'connectTimeoutMs'],
      restart: [],
      minting: [],
    },
    {
      name: 'what needs a restart keeps its value',
      wanted: { vipRange: range, metricsListen: listen, threads: 2, outboxCapacity: 1, readyTimeoutMs: 1, logLevel: 'warn' },
      used: { logLevel: 'warn' },
      live: ['logLevel'],
      restart: ['readyTimeoutMs', 'outboxCapacity', 'vipRange', 'metricsListen', 'threads'],
      minting: [],
    },
    {
      name: 'what an identity is made from',
      wanted: { ...(name === undefined ? {} : { nodeName: name }), labels: { a: 'b' } },
      used: {},
      live: [],
      restart: [],
      minting: ['nodeName', 'labels'],
    },
  ])('$name', ({ wanted, used, live, restart, minting }) => {
    expect(diffConfig(old, { ...old, ...wanted })).toEqual({ config: { ...old, ...used }, live, restart, minting });
  });

  test('the order of labels means nothing', () => {
    const labelled = (labels: Record<string, string>) => ({ ...old, labels });
    expect(diffConfig(labelled({ a: '1', b: '2' }), labelled({ b: '2', a: '1' })).minting).toEqual([]);
  });

  test('law: after a diff only what is not live still differs', () => {
    const some = fc.record({
      logLevel: fc.constantFrom<Config['logLevel'][]>('info', 'debug'),
      threads: fc.constantFrom<Config['threads'][]>('auto', 1, 2),
      connectTimeoutMs: fc.nat(3),
      outboxCapacity: fc.nat(3),
    });
    fc.assert(
      fc.property(some, some, (a, b) => {
        const before = { ...old, ...a };
        const after = { ...old, ...b };
        const again = diffConfig(diffConfig(before, after).config, after);
        expect(again.live).toEqual([]);
        expect(again.restart).toEqual(diffConfig(before, after).restart);
      }),
    );
  });
});

describe('planReload', () => {
  test('warns of what waits, by its place in the file', () => {
    const config: Config = { ...old, logLevel: 'debug', threads: 2, labels: { a: 'b' } };
    expect(planReload(old, { valid: true, config, warnings: ['w'] })).toEqual({
      config: { ...old, logLevel: 'debug' },
      live: ['logLevel'],
      warnings: [
        'w',
        'dataplane.threads changed; it takes effect after a restart',
        'labels changed; only a node without an identity reads it',
      ],
    });
  });

  test('an invalid configuration keeps the old one', () => {
    const problems = [{ origin: { from: 'file', file: 'holdfast.yaml', line: 2 } as const, path: 'logLevel', problem: 'bad' }];
    expect(planReload(old, { valid: false, problems, warnings: [] })).toEqual({
      config: old,
      live: [],
      warnings: [],
      error: 'the old configuration stays in use: config.invalid: holdfast.yaml:2: logLevel: bad',
    });
  });

  test('every setting says when it applies', () => {
    expect(settingNames.map((setting) => [setting, settings[setting].applies])).toEqual([
      ['nodeName', 'minting'],
      ['logLevel', 'live'],
      ['labels', 'minting'],
      ['readyTimeoutMs', 'restart'],
      ['outboxCapacity', 'restart'],
      ['vipRange', 'restart'],
      ['metricsListen', 'restart'],
      ['dnsListen', 'restart'],
      ['dnsZone', 'restart'],
      ['threads', 'restart'],
      ['connectTimeoutMs', 'live'],
      ['maxConnections', 'restart'],
      ['busyPollUs', 'restart'],
      ['ejectionFailures', 'restart'],
      ['ejectionReturnMs', 'restart'],
      ['handoverGraceMs', 'live'],
      ['dataPath', 'restart'],
      ['tableOwner', 'restart'],
      ['manageSysctls', 'restart'],
      ['markBits', 'restart'],
      ['staleAfterMs', 'live'],
      ['serverL1Listen', 'restart'],
      ['serverL2Listen', 'restart'],
      ['serverAdminListen', 'restart'],
      ['serverMetricsListen', 'restart'],
      ['serverHosts', 'restart'],
      ['serverAccount', 'restart'],
      ['serverEtcd', 'restart'],
      ['serverEtcdCluster', 'restart'],
      ['serverEtcdCa', 'restart'],
      ['serverEtcdCert', 'restart'],
      ['serverEtcdKey', 'restart'],
      ['nodeward', 'restart'],
      ['installer', 'live'],
      ['conductor', 'live'],
      ['packages', 'live'],
      ['nodeIp', 'restart'],
      ['instructionsAllow', 'live'],
      ['instructionsDeny', 'live'],
      ['scriptsAllow', 'live'],
      ['scriptsDeny', 'live'],
      ['kubectlAllow', 'live'],
      ['kubectlDeny', 'live'],
      ['auditOnFailure', 'restart'],
      ['overlayCidr', 'restart'],
      ['overlayEndpoint', 'restart'],
      ['overlayNetworks', 'restart'],
      ['vipAddress', 'restart'],
      ['vipInterface', 'restart'],
      ['vipOnDisconnect', 'restart'],
      ['vipCandidates', 'restart'],
    ]);
  });
});
