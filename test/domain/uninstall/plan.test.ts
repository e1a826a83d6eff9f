import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AbsolutePath, makePaths } from '../../../src/domain/kernel/paths.js';
import type { RemovalScope } from '../../../src/domain/uninstall/model.js';
import { ownEntries, planRemoval } from '../../../src/domain/uninstall/plan.js';
import { decodeOrder, encodeOrder } from '../../../src/domain/uninstall/schema.js';

const root = '/' as AbsolutePath;
const paths = makePaths({ root, dataDir: '/var/lib/holdfast' as AbsolutePath });

function lines(scope: RemovalScope): string {
  return planRemoval({ paths, root }, scope)
    .map((step) => {
      const { capability, what: _, ...act } = step;
      if (act.do === 'run') {
        const only = act.onlyIf === undefined ? '' : ` if ${act.onlyIf.join(' ')}`;
        return `${capability}: ${act.argv.join(' ')}${only} (${act.timeoutMs / 1000}s)`;
      }
      const { do: name, ...facts } = act;
      return `${capability}: ${[name, ...Object.values(facts).flat()].join(' ')}`;
    })
    .join('\n');
}

const UNIT = 'if systemctl cat -- holdfast-agent.service';
const BALANCED = 'if grep -q ^ *description holdfast  /etc/haproxy/haproxy.cfg';
const JOINED = 'if test -e /etc/kubernetes/kubelet.conf';

test('uninstall: the agent first, the state last, every program whole', () => {
  expect(lines('uninstall')).toBe(`agent: systemctl stop -- holdfast-agent.service ${UNIT} (90s)
agent: hold_data_dir
instruction: end_tasks
kubernetes: systemctl stop -- kubelet.service ${JOINED} (60s)
kubernetes: unmount_below /var/lib/kubelet
kubernetes: kubeadm reset --force ${JOINED} (600s)
kubernetes: remove_file /etc/kubernetes/enc/cert-upload-key.txt
dnsmasq: remove_dnsmasq
loadbalancer: systemctl stop -- haproxy.service ${BALANCED} (30s)
loadbalancer: rm -f -- /etc/haproxy/haproxy.cfg ${BALANCED} (30s)
dataplane: remove_rules
dataplane: restore_sysctls
dataplane: ip -4 route flush table local proto 202 (10s)
overlay: remove_overlay
state: systemctl disable -- holdfast-agent.service ${UNIT} (20s)
state: remove_file /etc/systemd/system/holdfast-agent.service
state: systemctl daemon-reload if test -d /run/systemd/system (20s)
state: remove_state /var/lib/holdfast admin view.db run journal.db sealing.key overlay.key dnsmasq.json api-servers.json listen-ports.json sysctls.json adoption.json certs enrolment.json registration-ca.crt audit.log node-identity.json lock`);
});

test('cleanup leaves the node and Kubernetes as they are', () => {
  expect(lines('cleanup')).toBe(`agent: systemctl stop -- holdfast-agent.service ${UNIT} (90s)
agent: hold_data_dir
instruction: end_tasks
dnsmasq: remove_dnsmasq
loadbalancer: systemctl stop -- haproxy.service ${BALANCED} (30s)
loadbalancer: rm -f -- /etc/haproxy/haproxy.cfg ${BALANCED} (30s)
dataplane: remove_rules
dataplane: restore_sysctls
dataplane: ip -4 route flush table local proto 202 (10s)
overlay: remove_overlay`);
});

test('every blocking step is bounded, and a root moves every path', () => {
  const moved = '/mnt/x' as AbsolutePath;
  const places = { paths: makePaths({ root: moved, dataDir: '/d' as AbsolutePath }), root: moved };
  for (const step of planRemoval(places, 'uninstall')) {
    if (step.do === 'run') expect(step.timeoutMs).toBeLessThanOrEqual(600_000);
    if (step.do === 'remove_file' || step.do === 'unmount_below') expect(step.path).toMatch(/^\/mnt\/x\//);
    if (step.do === 'remove_state') expect(step.folder).toBe('/mnt/x/d');
  }
});

describe('ownEntries', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    [
      'what SQLite and a rotation put behind a name is ours',
      ['journal.db-wal', 'audit.log.3', 'audit.log'],
      ['journal.db-wal', 'audit.log', 'audit.log.3'],
    ],
    ['what only begins alike is not', ['locksmith', 'certs2', 'notes.txt', 'log.db', 'holdfast.yaml'], []],
    ['the identity goes after the rest', ['lock', 'node-identity.json', 'certs'], ['certs', 'node-identity.json', 'lock']],
  ])('%s', (_, entries, own) => {
    const step = planRemoval({ paths, root }, 'uninstall').at(-1);
    if (step?.do !== 'remove_state') throw new Error('no state');
    expect([...ownEntries(step.names, entries)].sort()).toEqual([...own].sort());
    if (entries.includes('lock')) expect(ownEntries(step.names, entries)).toEqual(own);
  });

  test('names nothing that is not there, and nothing twice', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.uniqueArray(fc.string()), (names, entries) => {
        const own = ownEntries(names, entries);
        expect(new Set(own).size).toBe(own.length);
        for (const each of own) expect(entries).toContain(each);
      }),
    );
  });
});

describe('orders', () => {
  test('are read as they were written', () => {
    for (const stage of ['removing', 'installing'] as const) {
      const order = { kind: 'reinstall', task: 'abc', stage, at: 5 } as const;
      expect(decodeOrder(encodeOrder(order))).toEqual(order);
    }
    const own = { kind: 'uninstall', task: undefined, stage: 'removing', at: 5 } as const;
    expect(decodeOrder(encodeOrder(own))).toEqual(own);
  });

  test.each(['', '{', '[]', 'null', '{"kind":"format","stage":"removing","at":1}', '{"kind":"uninstall"}'])(
    '%j is none',
    (text) => {
      expect(decodeOrder(text)).toBeUndefined();
    },
  );
});
