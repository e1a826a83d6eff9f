import { describe, expect, test } from 'vitest';
import { acknowledging, base64, contentOf, InstructionWorld } from '../../support/instruction-rig.js';

const manifest = 'apiVersion: runos.com/v1\nkind: Volume\nmetadata:\n  name: a\n  namespace: a\nspec:\n  secret: s3cret\n';
const b64 = (text: string) => Buffer.from(text).toString('base64');

async function answered(type: string, payload: unknown, prepare: (world: InstructionWorld) => void = () => {}) {
  const world = new InstructionWorld();
  world.commands.program(['kubectl'], {});
  prepare(world);
  const process = await world.start();
  const session = process.connect(acknowledging(process));
  process.deliver(type, 't1', payload);
  await process.settle();
  return { world, process, session, said: session.sent.map((message) => `${message.type} ${contentOf(message)}`) };
}

describe('APPLY_CR and APPLY_OPERATOR', () => {
  test.each([
    ['APPLY_CR', { crB64: b64(manifest) }],
    ['APPLY_OPERATOR', { crdB64: b64(manifest) }],
  ])('%s: the text goes to kubectl by standard input, with the kubeconfig of the node', async (type, payload) => {
    const { world, said } = await answered(type, payload);
    expect(said).toEqual(['NO_CONTENT {}']);
    expect(world.commands.ran).toMatchObject([
      { argv: ['kubectl', 'apply', '-f', '-'], env: { KUBECONFIG: '/etc/kubernetes/admin.conf' }, stdin: manifest },
    ]);
  });

  test('a failure says what kubectl said', async () => {
    const { said } = await answered('APPLY_CR', { crB64: b64(manifest) }, ({ commands }) =>
      commands.program(['kubectl', 'apply'], { exitCode: 1, stderr: 'error: no matches for kind "Volume"\n' }),
    );
    expect(said).toEqual(['ERROR kubectl: exit code 1: error: no matches for kind "Volume"']);
  });

  test('without kubectl it says so', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('APPLY_CR', 't1', { crB64: b64(manifest) });
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual(['command.not_found: program=kubectl']);
  });

  test('bad YAML is refused with its place', async () => {
    const { said } = await answered('APPLY_CR', { crB64: b64('a: [') });
    expect(said).toEqual([expect.stringMatching(/^ERROR INVALID: APPLY_CR: crB64: .* at line 1, column 5/)]);
  });

  test('A7: after a death in the middle it runs once more', async () => {
    const world = new InstructionWorld();
    world.commands.program(['kubectl'], () => new Promise(() => {}));
    const first = await world.start();
    first.connect(acknowledging(first));
    first.deliver('APPLY_CR', 't1', { crB64: b64(manifest) });
    await first.settle();
    expect(world.commands.dump()).toBe('kubectl apply -f -\n');
    world.commands.program(['kubectl'], {});
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    await second.settle();
    expect(world.commands.dump()).toBe('kubectl apply -f -\nkubectl apply -f -\n');
    expect(session.of('t1').map(({ type }) => type)).toEqual(['NO_CONTENT']);
  });
});

test('DELETE_CR: absent is success, in the namespace of its own name', async () => {
  const { world, said } = await answered('DELETE_CR', { type: 'volumes', id: 'a1' });
  expect(said).toEqual(['NO_CONTENT {}']);
  expect(world.commands.dump()).toBe('kubectl delete volumes.v1.runos.com a1 -n a1 --ignore-not-found\n');
});

describe('RUN_KUBECTL_COMMAND', () => {
  test('a read is no task and is not journalled', async () => {
    const { world, said, process } = await answered('RUN_KUBECTL_COMMAND', ['get', 'pods'], ({ commands }) =>
      commands.program(['kubectl', 'get'], { stdout: 'a b\n' }),
    );
    expect(said).toEqual(['KUBECTL_COMMAND_RESPONSE {"response":"a b\\n"}']);
    expect(world.tasks.dump()).toBe('');
    expect(process.engine.snapshot().instructions).toEqual([]);
  });

  test('A4: what may run only once has a runner, and its end is learnt by the next process', async () => {
    const world = new InstructionWorld();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    world.tasks.install('/usr/bin/env', async () => {
      await ended;
      return { stdout: 'namespace/a created\n' };
    });
    const first = await world.start();
    first.connect(acknowledging(first));
    first.deliver('RUN_KUBECTL_COMMAND', 't1', ['create', 'ns', 'a']);
    await first.settle();
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    resolve();
    await second.settle();
    expect(world.tasks.started.map(({ argv, env }) => [...argv, env.KUBECONFIG].join(' '))).toEqual([
      '/usr/bin/env kubectl create ns a /etc/kubernetes/admin.conf',
    ]);
    expect(session.of('t1').map(contentOf)).toEqual(['{"response":"namespace/a created\\n"}']);
  });

  test('a verb that the policy denies', async () => {
    const world = new InstructionWorld();
    const policy = { allow: undefined, deny: [], scripts: { allow: undefined, deny: [] }, kubectl: { allow: ['get'], deny: [] } };
    const process = await world.start({ policy: () => policy });
    const session = process.connect(acknowledging(process));
    process.deliver('RUN_KUBECTL_COMMAND', 't1', base64(['delete', 'ns', 'a']));
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual([
      "DENIED: this node's policy does not allow it: instructions.kubectl.allow does not name delete",
    ]);
  });
});
