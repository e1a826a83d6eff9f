import { describe, expect, test } from 'vitest';
import { classifyKubectl } from '../../../src/domain/kubernetes/kubectl.js';

const words = (line: string) => line.split(' ').filter((word) => word !== '');

describe('A8: repeat class of a command line', () => {
  test.each<[string, string, string]>([
    ['get pods', 'get', 'read'],
    ['-n a get pods -o json', 'get', 'read'],
    ['--namespace=a get pods', 'get', 'read'],
    ['-na get pods', 'get', 'read'],
    ['-v 6 --context x get pods', 'get', 'read'],
    ['get pods -f x.yaml', 'get', 'read'],
    ['get pods --watch=false', 'get', 'read'],
    ['describe node a', 'describe', 'read'],
    ['logs a --tail 10', 'logs', 'read'],
    ['top nodes', 'top nodes', 'read'],
    ['version', 'version', 'read'],
    ['auth can-i get pods', 'auth can-i', 'read'],
    ['diff -f -', 'diff', 'read'],
    ['rollout status deploy/a', 'rollout status', 'read'],
    ['rollout history deploy/a', 'rollout history', 'read'],
    ['wait --for=condition=Ready pod/a', 'wait', 'read'],
    ['cordon a', 'cordon', 'repeat'],
    ['uncordon a', 'uncordon', 'repeat'],
    ['drain a --ignore-daemonsets', 'drain', 'repeat'],
    ['apply -f https://x/y.yaml', 'apply', 'repeat'],
    ['apply view-last-applied deploy/a', 'apply view-last-applied', 'repeat'],
    ['scale deploy/a --replicas 3', 'scale', 'repeat'],
    ['scale deploy/a --replicas 3 --current-replicas=2', 'scale', 'never'],
    ['label node a x=y --overwrite', 'label', 'repeat'],
    ['label node a x=y --overwrite=true', 'label', 'repeat'],
    ['label node a x=y --overwrite=false', 'label', 'never'],
    ['label node a x=y', 'label', 'never'],
    ['taint node a x=y:NoSchedule --overwrite', 'taint', 'repeat'],
    ['annotate node a x=y --overwrite', 'annotate', 'repeat'],
    ['delete pod a --ignore-not-found', 'delete', 'repeat'],
    ['delete pod a', 'delete', 'never'],
    ['delete pod a --ignore-not-found=false', 'delete', 'never'],
    ['create ns a', 'create ns', 'never'],
    ['run a --image b', 'run', 'never'],
    ['patch node a -p {}', 'patch', 'never'],
    ['replace -f x', 'replace', 'never'],
    ['rollout restart deploy/a', 'rollout restart', 'never'],
    ['rollout undo deploy/a', 'rollout undo', 'never'],
    ['expose deploy a', 'expose', 'never'],
    ['cp a:/x /y', 'cp', 'never'],
    ['certificate approve a', 'certificate approve', 'never'],
    ['exec a -- ls -it', 'exec', 'never'],
    ['exec a -- sh -c -i', 'exec', 'never'],
    // A plugin, a flag that nobody knows, and nothing at all.
    ['frobnicate a', 'frobnicate', 'never'],
    ['--later x get pods', '', 'never'],
    ['', '', 'never'],
    ['-n', '', 'never'],
    ['get pods --profile=cpu --profile-output=/etc/passwd', 'get', 'never'],
    ['config view', 'config view', 'never'],
  ])('%s', (line, verb, repeat) => {
    expect(classifyKubectl(words(line))).toEqual({ verb, repeat });
  });
});

test.each([
  ['logs -f a', 'kubectl logs -f does not end by itself'],
  ['logs --follow a', 'kubectl logs --follow does not end by itself'],
  ['-n x logs a --follow=true', 'kubectl logs --follow does not end by itself'],
  ['logs -pf a', 'kubectl logs -f does not end by itself'],
  ['get pods -w', 'kubectl get -w does not end by itself'],
  ['get pods --watch-only', 'kubectl get --watch-only does not end by itself'],
  ['events --watch', 'kubectl events --watch does not end by itself'],
  ['attach a', 'kubectl attach does not end by itself'],
  ['port-forward a 80', 'kubectl port-forward does not end by itself'],
  ['proxy', 'kubectl proxy does not end by itself'],
  ['edit deploy/a', 'kubectl edit does not end by itself'],
  ['apply edit-last-applied deploy/a', 'kubectl apply edit-last-applied does not end by itself'],
  ['exec -it a -- sh', 'kubectl exec -i needs somebody at a terminal'],
  ['exec -t a -- sh', 'kubectl exec -t needs somebody at a terminal'],
  ['run a --image b --stdin', 'kubectl run --stdin needs somebody at a terminal'],
  ['debug -it a', 'kubectl debug -i needs somebody at a terminal'],
])('refused: %s', (line, refused) => {
  expect(classifyKubectl(words(line))).toEqual({ refused });
});
