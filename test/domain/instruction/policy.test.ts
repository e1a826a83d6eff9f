import { expect, test } from 'vitest';
import type { InstructionType } from '../../../src/domain/instruction/model.js';
import {
  type InstructionPolicy,
  isInstructionType,
  judgeInstruction,
  USUAL_POLICY,
} from '../../../src/domain/instruction/policy.js';
import { scriptUrl } from '../../../src/domain/instruction/script.js';

const policy = (facts: Partial<InstructionPolicy> = {}): InstructionPolicy => ({ ...USUAL_POLICY, ...facts });
const scripts = (allow: readonly string[] | undefined, deny: readonly string[] = []) => policy({ scripts: { allow, deny } });

const verbs = (allow: readonly string[] | undefined, deny: readonly string[] = []) => policy({ kubectl: { allow, deny } });

test.each<[string, InstructionPolicy, InstructionType, string | undefined, boolean, string]>([
  ['any verb', USUAL_POLICY, 'RUN_KUBECTL_COMMAND', 'delete', true, 'default'],
  ['a verb by name', verbs(['get']), 'RUN_KUBECTL_COMMAND', 'get', true, 'instructions.kubectl.allow: get'],
  ['a family', verbs(['rollout *']), 'RUN_KUBECTL_COMMAND', 'rollout undo', true, 'instructions.kubectl.allow: rollout *'],
  [
    'a verb that is not named',
    verbs(['get']),
    'RUN_KUBECTL_COMMAND',
    'delete',
    false,
    'instructions.kubectl.allow does not name delete',
  ],
  ['one that nobody can tell', verbs(['get']), 'RUN_KUBECTL_COMMAND', '', false, 'instructions.kubectl.allow does not name '],
  ['a denied verb', verbs(undefined, ['exec']), 'RUN_KUBECTL_COMMAND', 'exec', false, 'instructions.kubectl.deny: exec'],
  ['scripts are no verbs', verbs([]), 'RUN_REMOTE_SCRIPT', 'a', true, 'default'],
  ['all by default', USUAL_POLICY, 'UNINSTALL_NODE', undefined, true, 'default'],
  ['but one', USUAL_POLICY, 'REINSTALL_NODE', undefined, false, 'instructions.deny: REINSTALL_NODE'],
  ['a list of deny is the whole list', policy({ deny: [] }), 'REINSTALL_NODE', undefined, true, 'default'],
  [
    'allowed by name',
    policy({ allow: ['GET_NODE_STATUS'] }),
    'GET_NODE_STATUS',
    undefined,
    true,
    'instructions.allow: GET_NODE_STATUS',
  ],
  ['not named', policy({ allow: [] }), 'GET_NODE_STATUS', undefined, false, 'instructions.allow does not name GET_NODE_STATUS'],
  [
    'deny goes first',
    policy({ allow: ['VIP_ASSIGN'], deny: ['VIP_ASSIGN'] }),
    'VIP_ASSIGN',
    undefined,
    false,
    'instructions.deny: VIP_ASSIGN',
  ],
  ['any script', USUAL_POLICY, 'RUN_REMOTE_SCRIPT', 'a', true, 'default'],
  ['a script by name', scripts(['a']), 'RUN_REMOTE_SCRIPT', 'a', true, 'instructions.scripts.allow: a'],
  ['a script by its beginning', scripts(['/t/*']), 'RUN_REMOTE_SCRIPT', '/t/a', true, 'instructions.scripts.allow: /t/*'],
  ['a script that is not named', scripts(['a']), 'RUN_REMOTE_SCRIPT', 'ab', false, 'instructions.scripts.allow does not name ab'],
  ['a denied script', scripts(['*'], ['rm*']), 'RUN_REMOTE_SCRIPT', 'rm-all', false, 'instructions.scripts.deny: rm*'],
  [
    'a script of a denied type',
    policy({ deny: ['RUN_REMOTE_SCRIPT'] }),
    'RUN_REMOTE_SCRIPT',
    'a',
    false,
    'instructions.deny: RUN_REMOTE_SCRIPT',
  ],
])('%s', (_, rules, type, name, allowed, rule) => {
  const kind = type === 'RUN_KUBECTL_COMMAND' ? 'kubectl' : 'script';
  expect(judgeInstruction(rules, type, name === undefined ? undefined : { kind, name })).toEqual({ allowed, rule });
});

test('types are known by their names', () => {
  expect(['GET_NODE_STATUS', 'get_node_status', 1, undefined].map(isInstructionType)).toEqual([true, false, false, false]);
});

test.each([
  ['hello', 'https://i.test/scripts?t=hello&i=e30%3D'],
  ['a/b.sh', 'https://i.test/scripts?t=a%2Fb.sh&i=e30%3D'],
  ['t/a', 'https://i.test/scripts?t=t%2Fa&i=e30%3D'],
  ['/a', 'https://i.test/scripts?t=%2Fa&i=e30%3D'],
  ['/t/a', 'https://c.test/t/a'],
])('the script %s is at %s', (name, url) => {
  expect(scriptUrl({ installer: 'https://i.test', conductor: 'https://c.test' }, name, 'e30=')).toBe(url);
  expect(scriptUrl({ installer: undefined, conductor: undefined }, name, 'e30=')).toBeUndefined();
});
