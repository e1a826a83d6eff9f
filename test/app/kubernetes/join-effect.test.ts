import { describe, expect, test } from 'vitest';
import { acknowledging, contentOf, InstructionWorld } from '../../support/instruction-rig.js';

const KEY = '1'.padStart(64, '0');

async function asked(asCp: boolean | undefined, prepare: (world: InstructionWorld) => void = () => {}) {
  const world = new InstructionWorld();
  world.commands.program(['kubeadm', 'token', 'create'], { stdout: 'kubeadm join 10.0.0.1:6443 --token abc.def \n' });
  world.commands.program(['kubeadm', 'init'], { stdout: '[upload-certs] Using certificate key:\n' });
  prepare(world);
  const process = await world.start();
  const session = process.connect(acknowledging(process));
  process.deliver('GET_CLUSTER_JOIN_CMD', 't1', asCp === undefined ? {} : { asCp });
  await process.settle();
  return { world, said: session.sent.map((message) => `${message.type} ${contentOf(message)}`) };
}

test('of a worker', async () => {
  const { world, said } = await asked(undefined, ({ join }) => {
    join.encryption = 's3cret';
  });
  expect(said).toEqual(['CLUSTER_JOIN_CMD {"joinCmd":"kubeadm join 10.0.0.1:6443 --token abc.def"}']);
  expect(world.commands.dump()).toBe('kubeadm token create --print-join-command --kubeconfig /etc/kubernetes/admin.conf\n');
});

test('of a control plane: the key is uploaded first, by a file and not by a flag', async () => {
  const { world, said } = await asked(true, ({ join }) => {
    join.encryption = 's3cret';
  });
  const joinCmd = `kubeadm join 10.0.0.1:6443 --token abc.def --control-plane --certificate-key ${KEY}`;
  expect(said).toEqual([`CLUSTER_JOIN_CMD ${JSON.stringify({ joinCmd, encryptionKey: 's3cret' })}`]);
  expect(world.commands.dump()).toBe(
    'kubeadm init phase upload-certs --upload-certs --config /private/kubeadm-config.yaml --kubeconfig /etc/kubernetes/admin.conf\n' +
      'kubeadm token create --print-join-command --kubeconfig /etc/kubernetes/admin.conf\n',
  );
  expect(world.join.copies).toEqual([]);
});

test('without an encryption key it is left out', async () => {
  const { said } = await asked(true);
  expect(said[0]).not.toContain('encryptionKey');
});

describe('an ERROR, never a part', () => {
  test.each<[string, (world: InstructionWorld) => void, string]>([
    [
      'the upload fails',
      ({ commands }) => commands.program(['kubeadm', 'init'], { exitCode: 1, stdout: 'token abc', stderr: 'error: no etcd' }),
      'ERROR kubernetes.failed: kubeadm init phase: exit code 1: error: no etcd',
    ],
    [
      'no token is made',
      ({ commands }) => commands.program(['kubeadm', 'token', 'create'], { exitCode: 1, stdout: 'abc.def', stderr: 'timed out' }),
      'ERROR kubernetes.failed: kubeadm token create: exit code 1: timed out',
    ],
    [
      'nothing is printed',
      ({ commands }) => commands.program(['kubeadm', 'token', 'create'], { stdout: '\n' }),
      'ERROR kubernetes.failed: kubeadm token create printed no command that joins',
    ],
    [
      'a key cannot be read',
      ({ join }) => {
        join.broken = true;
      },
      'ERROR kubernetes.unreadable: told to fail',
    ],
  ])('%s', async (_, prepare, expected) => {
    const { said } = await asked(true, prepare);
    expect(said).toEqual([expected]);
  });
});
